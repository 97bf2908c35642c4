//! Quality values: the weights of the members of an `Accept-…` header (RFC 9110, section 12.4.2).

/// The members of a list, each with its weight in thousandths. Malformed members are left out.
pub fn members(list: &str) -> impl Iterator<Item = (&str, u16)> {
    list.split(',').filter_map(member)
}

/// The weight of the member with this name, which is case-insensitive, or else of `*`. `None` if neither is in the list.
#[must_use]
pub fn weight_of(list: &str, name: &str) -> Option<u16> {
    let find = |wanted: &str| {
        members(list).filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, weight)| weight).max()
    };
    find(name).or_else(|| find("*"))
}

fn member(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next()?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => {
            let (name, value) = parameter.split_once('=')?;
            let is_weight = name.trim().eq_ignore_ascii_case("q");
            is_weight.then(|| parse_weight(value.trim())).flatten()?
        }
    };
    (!name.is_empty() && parts.next().is_none()).then_some((name, weight))
}

/// Parses a weight, such as `0.5` or `1.000`: at most 1, with at most three decimals.
fn parse_weight(value: &str) -> Option<u16> {
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", _) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}
