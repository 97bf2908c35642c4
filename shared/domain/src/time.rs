//! Timestamps, and the clock. No other code reads the system's time, except to sign calls to AWS.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::language::Language;
use crate::texts::Times;

/// Maximum difference between the clocks of two instances. A stored time further ahead was stored while a clock was wrong.
pub const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);

/// A time in milliseconds since the Unix epoch. The default is the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Parses an RFC 3339 timestamp with any offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok().map(Self)
    }

    /// The time this many seconds after the Unix epoch. Saturates on overflow.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The time rounded down to a whole second, for values stored in seconds.
    #[must_use]
    pub fn start_of_second(self) -> Self {
        Self::from_seconds(self.seconds())
    }

    /// The time that has passed since `earlier`. Zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or_default())
    }

    /// Whether this stored time must come from a clock that was ahead. `wait` is how far ahead of now a correct clock
    /// may set it: zero for past events.
    #[must_use]
    pub fn is_too_far_ahead(self, wait: Duration, now: Self) -> bool {
        self > now + wait + CLOCK_TOLERANCE
    }

    /// Whether this past event was less than `time` ago. False if the clock was ahead when the event was stored.
    #[must_use]
    pub fn is_within(self, time: Duration, now: Self) -> bool {
        now.since(self) < time && !self.is_too_far_ahead(Duration::ZERO, now)
    }

    /// The time at which something is due, or `now` if it was scheduled while the clock was ahead.
    #[must_use]
    pub fn or_now(self, wait: Duration, now: Self) -> Self {
        if self.is_too_far_ahead(wait, now) { now } else { self }
    }

    /// The time relative to `now` in words, such as `3 days ago`. A time after `now` is `just now`.
    #[must_use]
    pub fn relative(self, now: Self, language: Language) -> String {
        let times = Times::of(language);
        let seconds = u64::try_from(now.seconds() - self.seconds()).unwrap_or_default();
        match seconds {
            0..MINUTE => times.now().to_owned(),
            MINUTE..HOUR => times.minutes(seconds / MINUTE),
            HOUR..DAY => times.hours(seconds / HOUR),
            DAY..WEEK => times.days(seconds / DAY),
            WEEK..MONTH => times.weeks(seconds / WEEK),
            MONTH..YEAR => times.months(seconds / MONTH),
            YEAR.. => times.years(seconds / YEAR),
        }
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(millis(time)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(millis(time)))
    }
}

/// A whole hour, numbered from the Unix epoch. Limits and counts are kept per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour(pub i64);

impl Hour {
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        Self(time.seconds().div_euclid(HOUR.cast_signed()))
    }

    #[must_use]
    pub fn after(self, hours: i64) -> Self {
        Self(self.0 + hours)
    }

    #[must_use]
    pub fn start(self) -> Timestamp {
        Timestamp(self.0 * HOUR.cast_signed() * 1000)
    }

    /// The expiry of the hour's counts, in Unix seconds: an hour after its end, because clocks differ.
    #[must_use]
    pub fn expiry(self) -> i64 {
        self.after(2).start().seconds()
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

// Units of time in seconds.
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 30 * DAY;
const YEAR: u64 = 365 * DAY;

/// `2026-01-02T03:04:05+00:00`. Written digit by digit, because a page has a hundred timestamps and the general formatter takes
/// 4,000 instructions for each.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = OffsetDateTime::from_unix_timestamp(self.seconds()).map_err(|_| fmt::Error)?;
        let year = u32::try_from(time.year()).map_err(|_| fmt::Error)?;
        let mut text = *b"0000-00-00T00:00:00+00:00";
        let mut write = |at: usize, digits: usize, mut number: u32| {
            for place in text[at..at + digits].iter_mut().rev() {
                *place = b"0123456789"[(number % 10) as usize];
                number /= 10;
            }
        };
        write(0, 4, year);
        write(5, 2, u8::from(time.month()).into());
        write(8, 2, time.day().into());
        write(11, 2, time.hour().into());
        write(14, 2, time.minute().into());
        write(17, 2, time.second().into());
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Serializes the text, for responses. Stored items contain the number instead, which [`stored`] writes.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Serialization of times in items of the table and in queue messages: as Unix milliseconds, or as Unix seconds where marked.
pub mod stored {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Timestamp;

    pub fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        time.0.serialize(serializer)
    }

    pub fn optional<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.0).serialize(serializer)
    }

    pub fn list<S: Serializer>(times: &[Timestamp], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(times.iter().map(|time| time.0))
    }

    /// Unix seconds. The fraction of a second is dropped.
    pub mod seconds {
        use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp};

        pub fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
            time.seconds().serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
            i64::deserialize(deserializer).map(Timestamp::from_seconds)
        }
    }

    /// Unix seconds, which may be missing.
    pub mod optional_seconds {
        use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp};

        pub fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
            time.map(Timestamp::seconds).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
            Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_seconds))
        }
    }
}

/// A source of the time, which tests can replace.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| {
            #[expect(clippy::disallowed_methods, reason = "this is the clock")]
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        })
    }

    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_up_to_a_minute_ahead_may_be_of_another_clock_and_a_later_one_is_wrong() {
        let (now, minute) = (Timestamp(1_800_000_000_000), Duration::from_mins(1));
        let millisecond = Duration::from_millis(1);
        for (time, is_within) in [
            (now - minute, false),
            (now - minute + millisecond, true),
            (now + minute, true),
            (now + minute + millisecond, false),
        ] {
            assert_eq!(time.is_within(minute, now), is_within, "{time:?}");
        }
        assert_eq!((now + 3 * minute).or_now(2 * minute, now), now + 3 * minute);
        assert_eq!((now + 3 * minute + millisecond).or_now(2 * minute, now), now);
    }

    #[test]
    fn an_hour_begins_with_its_first_second_and_is_forgotten_an_hour_after_its_end() {
        let at = |seconds: i64| Timestamp(seconds * 1_000);
        assert_eq!([at(-1), at(0), at(7_199), at(7_200)].map(Hour::of), [Hour(-1), Hour(0), Hour(1), Hour(2)]);
        assert_eq!((Hour(2).start(), Hour(1).expiry()), (at(7_200), 3 * 3_600));
    }

    #[test]
    fn a_time_is_written_with_its_offset() {
        for (time, text) in [
            (1_767_323_045_999, "2026-01-02T03:04:05+00:00"),
            (1_709_251_199_000, "2024-02-29T23:59:59+00:00"),
            (0, "1970-01-01T00:00:00+00:00"),
            (-1, "1969-12-31T23:59:59+00:00"),
            (253_402_300_799_999, "9999-12-31T23:59:59+00:00"),
        ] {
            assert_eq!(Timestamp(time).to_string(), text);
        }
    }

    #[test]
    fn a_time_is_read_with_any_offset() {
        assert_eq!(Timestamp::parse("2026-01-02T04:04:05+01:00"), Some(Timestamp(1_767_323_045_000)));
        assert_eq!(Timestamp::parse("2026-01-02T03:04:05.5Z"), Some(Timestamp(1_767_323_045_500)));
        assert_eq!(Timestamp::parse("tomorrow"), None);
        assert_eq!(Timestamp::parse("2026-01-02"), None);
    }

    #[test]
    fn the_start_of_a_second_rounds_down_even_before_1970() {
        let start = |millis| Timestamp(millis).start_of_second().0;
        assert_eq!([-1, 0, 999, 1_000, 1_999].map(start), [-1_000, 0, 0, 1_000, 1_000]);
        assert_eq!(Timestamp::from_seconds(i64::MAX), Timestamp(i64::MAX));
    }

    #[test]
    fn a_time_stored_in_seconds_loses_its_milliseconds() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Row {
            #[serde(with = "stored::seconds")]
            at: Timestamp,
            #[serde(default, skip_serializing_if = "Option::is_none", with = "stored::optional_seconds")]
            until: Option<Timestamp>,
        }
        for (millis, until, json) in
            [(1_767_323_045_999, None, r#"{"at":1767323045}"#), (-1, Some(Timestamp(7_000)), r#"{"at":-1,"until":7}"#)]
        {
            let row = Row { at: Timestamp(millis), until };
            assert_eq!(serde_json::to_string(&row).unwrap(), json);
            let read: Row = serde_json::from_str(json).unwrap();
            assert_eq!(read, Row { at: row.at.start_of_second(), until });
        }
    }

    #[test]
    fn times_move_by_durations_and_never_overflow() {
        let (minute, forever) = (Duration::from_mins(1), Duration::MAX);
        assert_eq!(Timestamp(5) + minute, Timestamp(60_005));
        assert_eq!(Timestamp(60_005) - minute, Timestamp(5));
        assert_eq!(Timestamp(60_005).since(Timestamp(5)), minute);
        assert_eq!(Timestamp(5).since(Timestamp(60_005)), Duration::ZERO);
        assert_eq!(Timestamp(5) + forever, Timestamp(i64::MAX));
        assert_eq!(Timestamp(-5) - forever, Timestamp(i64::MIN));
    }

    #[test]
    fn relative_times_are_words() {
        let ago = |seconds: i64| Timestamp(0).relative(Timestamp(seconds * 1000), Language::ENGLISH);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(59), "just now");
        assert_eq!(ago(60), "1 minute ago");
        assert_eq!(ago(3_599), "59 minutes ago");
        assert_eq!(ago(3_600), "1 hour ago");
        assert_eq!(ago(3 * 86_400), "3 days ago");
        assert_eq!(ago(14 * 86_400), "2 weeks ago");
        assert_eq!(ago(60 * 86_400), "2 months ago");
        assert_eq!(ago(800 * 86_400), "2 years ago");
    }

    /// The words of `Intl.RelativeTimeFormat` in CLDR 48, except for the first.
    #[rustfmt::skip]
    const WORDS: [(&str, [&str; 7]); 12] = [
        ("ar", ["الآن", "قبل يوم واحد", "قبل يومين", "قبل 5 أيام", "قبل شهر واحد", "قبل سنتين", "قبل 21 سنة"]),
        ("de", ["gerade eben", "vor 1 Tag", "vor 2 Tagen", "vor 5 Tagen", "vor 1 Monat", "vor 2 Jahren", "vor 21 Jahren"]),
        ("en", ["just now", "1 day ago", "2 days ago", "5 days ago", "1 month ago", "2 years ago", "21 years ago"]),
        ("es", ["ahora mismo", "hace 1 día", "hace 2 días", "hace 5 días", "hace 1 mes", "hace 2 años", "hace 21 años"]),
        ("fr", ["à l’instant", "il y a 1 jour", "il y a 2 jours", "il y a 5 jours", "il y a 1 mois", "il y a 2 ans", "il y a 21 ans"]),
        ("it", ["adesso", "1 giorno fa", "2 giorni fa", "5 giorni fa", "1 mese fa", "2 anni fa", "21 anni fa"]),
        ("ja", ["たった今", "1 日前", "2 日前", "5 日前", "1 か月前", "2 年前", "21 年前"]),
        ("nl", ["zojuist", "1 dag geleden", "2 dagen geleden", "5 dagen geleden", "1 maand geleden", "2 jaar geleden", "21 jaar geleden"]),
        ("pl", ["przed chwilą", "1 dzień temu", "2 dni temu", "5 dni temu", "1 miesiąc temu", "2 lata temu", "21 lat temu"]),
        ("pt", ["agora mesmo", "há 1 dia", "há 2 dias", "há 5 dias", "há 1 mês", "há 2 anos", "há 21 anos"]),
        ("ru", ["только что", "1 день назад", "2 дня назад", "5 дней назад", "1 месяц назад", "2 года назад", "21 год назад"]),
        ("zh", ["刚刚", "1天前", "2天前", "5天前", "1个月前", "2年前", "21年前"]),
    ];

    #[test]
    fn relative_times_are_words_of_every_language() {
        let ago = |tag, days: i64| Timestamp(0).relative(Timestamp(days * 86_400_000), Language::of_tag(tag));
        for (tag, words) in WORDS {
            assert_eq!([0, 1, 2, 5, 30, 800, 21 * 365 + 6].map(|days| ago(tag, days)), words);
        }
        let mut tags: Vec<&str> = Language::all().map(Language::tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, WORDS.map(|(tag, _)| tag));
    }
}
