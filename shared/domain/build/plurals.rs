//! The rules of plurals from CLDR, by Unicode's own crate. They are asked while building, so that functions carry neither them
//! nor the code that works them out.

use icu_locale_core::Locale;
use icu_plurals::{PluralCategory, PluralRules};

use crate::locales::Rules;

/// Numbers whose form is stored. That of a larger one follows from its last two digits, or is that of a million.
const STORED: u64 = 200;
const MILLION: u64 = 1_000_000;

/// `None` for what is no language, and for one whose forms cannot be stored.
pub(crate) fn rules(tag: &str) -> Option<Rules> {
    let rules = PluralRules::try_new_cardinal(tag.parse::<Locale>().ok()?.into()).ok()?;
    let categories: Vec<PluralCategory> = rules.categories().collect();
    let form = |number| {
        let category = rules.category_for(number);
        categories.iter().position(|other| *other == category)
    };
    let stored = |number| match number {
        0..STORED => number,
        _ if number.is_multiple_of(MILLION) => MILLION,
        _ => STORED / 2 + number % (STORED / 2),
    };
    let near = |number: u64| number - 120..number + 120;
    let round = [10_000, 100_000, MILLION, 2 * MILLION, 10 * MILLION, 1_000 * MILLION];
    let mut numbers = (0..2_000).chain(round.into_iter().flat_map(near));
    if !numbers.all(|number| form(number) == form(stored(number))) {
        return None;
    }
    let forms = (0..STORED).chain([MILLION]).map(form).collect::<Option<_>>()?;
    Some(Rules { categories: categories.into_iter().map(name).collect(), forms })
}

fn name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}
