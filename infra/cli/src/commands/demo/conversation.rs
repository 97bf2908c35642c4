//! A month's conversation between six people below the demo's post.

use std::time::Duration;

use crate::commands::people::{ADA, GRACE, LAYLA, MARTA, Person, TOMAS, WANJIRU};

pub(super) struct Said {
    pub(super) by: &'static Person,
    /// The comment's age at the first visit.
    pub(super) ago: Duration,
    pub(super) body: &'static str,
    pub(super) liked_by: &'static [&'static Person],
    pub(super) mentions: &'static [&'static str],
    pub(super) pinned: bool,
    pub(super) replies: &'static [Said],
}

impl Said {
    const fn new(by: &'static Person, days: u64, hours: u64, body: &'static str) -> Self {
        let ago = Duration::from_hours(24 * days + hours);
        Self { by, ago, body, liked_by: &[], mentions: &[], pinned: false, replies: &[] }
    }

    const fn liked_by(self, liked_by: &'static [&'static Person]) -> Self {
        Self { liked_by, ..self }
    }

    const fn mentioning(self, mentions: &'static [&'static str]) -> Self {
        Self { mentions, ..self }
    }

    const fn pinned(self) -> Self {
        Self { pinned: true, ..self }
    }

    const fn replies(self, replies: &'static [Self]) -> Self {
        Self { replies, ..self }
    }
}

/// Top-level comments, oldest first.
pub(super) static CONVERSATION: [Said; 6] = [
    Said::new(
        &GRACE,
        30,
        5,
        "Welcome to the margin! Three house rules:\n\n\
         1. Be curious.\n\
         2. Quote what you're replying to.\n\
         3. Disagree with the note, not with the person who wrote it.\n\n\
         *Markdown* works here, and so do `code` and links.",
    )
    .pinned()
    .liked_by(&[&MARTA, &LAYLA]),
    Said::new(
        &WANJIRU,
        29,
        3,
        "I read the part about cold hands with a cold hand. My favourite of that kind:\n\n\
         > New parchment, bad ink; O I say nothing more.\n\n\
         Did the abbots ever read these notes?",
    )
    .liked_by(&[&ADA, &MARTA, &TOMAS, &LAYLA])
    .replies(&[Said::new(
        &MARTA,
        28,
        22,
        "They must have. Somebody checked every page against the original. My guess: the complaints stayed because \
             everyone in the room agreed with them.",
    )
    .liked_by(&[&WANJIRU])
    .replies(&[Said::new(&TOMAS, 27, 9, "So the corrector was the first moderator in history 😄")
        .liked_by(&[&ADA, &GRACE, &WANJIRU])
        .replies(&[Said::new(&GRACE, 26, 23, "Unpaid, cold and outnumbered. I feel seen.")
            .liked_by(&[&TOMAS])
            .replies(&[Said::new(
                &ADA,
                26,
                2,
                "And no undo. Five seconds of it would have saved a lot of parchment.",
            )])])])]),
    Said::new(
        &LAYLA,
        21,
        8,
        "Where I work, the margin often holds a second book: a commentary (حاشية, *ḥāshiya*) runs around the text, and \
         sometimes a commentary on that commentary runs around both.",
    )
    .liked_by(&[&GRACE, &MARTA, &WANJIRU])
    .replies(&[
        Said::new(&MARTA, 20, 12, "Nested replies, centuries early! @ada, you have to see one of these pages.")
            .mentioning(&["ada"]),
        Said::new(&ADA, 20, 3, "Seen, and framed. I wonder what they did when the page ended before the argument.")
            .liked_by(&[&LAYLA]),
    ]),
    Said::new(
        &ADA,
        14,
        6,
        "I counted the hands in the transcriptions that our library has online:\n\n\
         ```python\n\
         hands = Counter(n.book for n in notes if \"☞\" in n.text)\n\
         print(len(hands), hands.total(), hands.most_common(1))\n\
         ```\n\n\
         41 books and 1,207 hands. One reader pointed at **everything**.",
    )
    .liked_by(&[&MARTA, &TOMAS])
    .replies(&[
        Said::new(&TOMAS, 13, 21, "That was me with a yellow marker, in my first year.").liked_by(&[&ADA, &WANJIRU])
    ]),
    Said::new(
        &TOMAS,
        6,
        4,
        "For everyone who wants to start one: [the article on manicules](https://en.wikipedia.org/wiki/Manicule) has \
         more hands than I could have hoped for.",
    ),
    Said::new(&WANJIRU, 0, 20, "Came for the cat, stayed for the comments. ❤️").liked_by(&[&MARTA]),
];
