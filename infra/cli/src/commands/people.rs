//! The people of the demo. All of them have commented on its page, and Ada and Grace have sample tokens.

use server::token::Token;

#[derive(Debug)]
pub(super) struct Person {
    /// Ada and Grace have small ids, like an application's users. An application is unlikely to have the other ids.
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) moderator: bool,
}

pub(super) static ADA: Person = Person { id: 1, name: "Ada", moderator: false };
pub(super) static GRACE: Person = Person { id: 2, name: "Grace", moderator: true };
pub(super) static MARTA: Person = Person { id: 4_503_599_627_370_001, name: "Marta Oliveira", moderator: false };
pub(super) static TOMAS: Person = Person { id: 4_503_599_627_370_002, name: "Tomás Vidal", moderator: false };
pub(super) static WANJIRU: Person = Person { id: 4_503_599_627_370_003, name: "Wanjiru Kamau", moderator: false };
pub(super) static LAYLA: Person = Person { id: 4_503_599_627_370_004, name: "ليلى حداد", moderator: false };

pub(super) static EVERYONE: [&Person; 6] = [&ADA, &GRACE, &MARTA, &TOMAS, &WANJIRU, &LAYLA];

impl Person {
    pub(super) fn token(&self) -> Token {
        Token { moderator: self.moderator, ..Token::new(&self.id.to_string(), self.name) }
    }
}
