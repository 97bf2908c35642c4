//! Parses times in sources to instants in UTC, truncated to seconds.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use shared::domain::time;

/// Parses a time, which is in `zone` if it has no offset. `None` if it's invalid, or not after the start of 1970,
/// because other systems write `0000-00-00` and `0001-01-01` for a missing time.
pub(super) fn parse(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    let compact = without_space_before_offset(text);
    let instant = match compact.parse::<Timestamp>() {
        Ok(instant) => instant,
        Err(_) if ends_with_offset(&compact) => return None,
        Err(_) => text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp(),
    };
    whole_seconds(instant.as_second())
}

/// Parses a time, which is in UTC if it has no offset.
pub(super) fn parse_utc(text: &str) -> Option<Timestamp> {
    parse(text, &TimeZone::UTC)
}

/// Converts Unix seconds and drops the fraction.
pub(super) fn from_unix(seconds: f64) -> Option<Timestamp> {
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is dropped, and the bounds are checked")]
    let whole = seconds.is_finite().then(|| seconds.floor() as i64)?;
    whole_seconds(whole)
}

/// Smaller numbers are seconds. As milliseconds, they would be no later than March 1973.
const SMALLEST_MILLISECONDS: f64 = 1e11;

/// Converts a Unix time in milliseconds or seconds.
pub(super) fn from_number(number: f64) -> Option<Timestamp> {
    from_unix(if number < SMALLEST_MILLISECONDS { number } else { number / 1000.0 })
}

pub(super) fn timestamp(instant: Timestamp) -> time::Timestamp {
    time::Timestamp(instant.as_millisecond())
}

fn whole_seconds(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok().filter(|instant| instant.as_second() > 0)
}

/// Turns `2020-01-02 03:04:05 -0700` and `… UTC` into `2020-01-02 03:04:05-0700` and `…Z`. Drops the zone's name and
/// the monotonic clock that Go appends: `… +0800 CST m=+0.01`.
fn without_space_before_offset(text: &str) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let is_offset = |part: &&str| part.starts_with(['+', '-']) || matches!(*part, "UTC" | "GMT" | "Z");
    let is_added = |part: &&str| {
        part.starts_with("m=") || part.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match parts.iter().skip(1).position(is_offset).map(|place| parts.split_at(place + 1)) {
        Some((time, [offset, added @ ..])) if added.iter().all(is_added) => {
            format!("{}{}", time.join(" "), if offset.starts_with(['+', '-']) { offset } else { "Z" })
        }
        _ => text.to_owned(),
    }
}

/// Whether there is `Z` or an offset after the time of day.
fn ends_with_offset(text: &str) -> bool {
    let time = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    time.contains(['Z', 'z', '+', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str, zone: &str) -> Option<i64> {
        parse(text, &TimeZone::get(zone).unwrap()).map(Timestamp::as_second)
    }

    #[test]
    fn an_offset_takes_precedence_over_the_zone() {
        for text in [
            "2020-01-02T03:04:05Z",
            "2020-01-02T03:04:05.987654Z",
            "2020-01-02T04:04:05+01:00",
            "2020-01-01T20:04:05-07:00",
            "2020-01-01 20:04:05 -0700",
            "2020-01-02 03:04:05 +0000",
            "2020-01-02 03:04:05 UTC",
            "2020-01-02 11:04:05 +0800 CST",
            "2020-01-02 11:04:05.123456789 +0800 +0800 m=+0.01",
            "2020-01-02 03:04:05 +0000 UTC m=-1.5",
            " 2020-01-02 03:04:05Z\n",
        ] {
            assert_eq!(seconds(text, "Asia/Tokyo"), Some(1_577_934_245), "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_is_in_the_zone_with_its_daylight_saving() {
        assert_eq!(seconds("2020-01-02 03:04:05", "UTC"), Some(1_577_934_245));
        assert_eq!(seconds("2020-01-02T04:04:05.5", "Europe/Berlin"), Some(1_577_934_245));
        assert_eq!(seconds("2020-07-01 02:00:00", "Europe/Berlin"), Some(1_593_561_600));
    }

    #[test]
    fn an_invalid_time_is_none_and_not_the_current_time() {
        for text in [
            "",
            "tomorrow",
            "0001-01-01T00:00:00Z",
            "0000-00-00 00:00:00",
            "2011-x09-30T22:48:43Z",
            "2020-13-01 00:00:00",
            "2020-01-02 03:04:05 +0000 (?)",
            "2020-01-02T03:04:05+99:00",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(seconds(text, "UTC"), None, "{text}");
        }
        for number in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            assert_eq!(from_unix(number), None, "{number}");
            assert_eq!(from_number(number), None, "{number}");
        }
    }

    #[test]
    fn a_number_is_in_milliseconds_or_in_seconds() {
        for number in [1_577_934_245_000.0, 1_577_934_245_999.0, 1_577_934_245.0, 1_577_934_245.9] {
            assert_eq!(from_number(number).map(Timestamp::as_second), Some(1_577_934_245), "{number}");
        }
    }

    #[test]
    fn fractions_of_a_second_are_dropped() {
        assert_eq!(from_unix(1_700_000_600.5).unwrap().as_second(), 1_700_000_600);
        assert_eq!(parse_utc("2020-01-02T03:04:05.999Z").unwrap().subsec_nanosecond(), 0);
    }
}
