//! The people of the demonstration. Ada and Grace have tokens to try the service with; all of them commented on its page.

use server::token::Token;

#[derive(Debug)]
pub(super) struct Person {
    /// The ids of Ada and Grace are small, as those of an application are. The others are too large for any application.
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
