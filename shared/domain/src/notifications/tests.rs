//! The rules of notifications, one test for each.

use std::collections::HashMap;

use serde_dynamo::{AttributeValue, Item};

use super::enrolment::{MAX_ASKING, MAX_MUTED};
use super::schedule::MAX_MAILS;
use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const WAIT: Duration = Duration::from_mins(1);

fn address(confirmed: bool) -> Address {
    Address { sealed: "sealed".to_owned(), language: "en".to_owned(), confirmed }
}

fn guest(name: &str) -> Visitor {
    Visitor(name.to_owned())
}

fn asker(name: &str, network: &str) -> Asker {
    Asker::new(Asker::of(&guest(name)), address(false), network.to_owned(), None)
}

/// The state of a guest after the visitor with this name requested emails.
fn asked(name: &str) -> NotificationState {
    let mut state = NotificationState::default();
    state.ask(asker(name, "home"), NOW, WAIT);
    state
}

/// Notifies the guest with this name of a reply.
fn answer(state: &mut NotificationState, name: &str, id: u64, now: Timestamp) -> Notified {
    state.notify(CommentId(id), &[Reason::ReplyToGuest(guest(name))], "thread", now, WAIT)
}

/// Takes the next step. Returns the name of the guest who was sent a confirmation; `None` if none was sent.
fn confirmation(state: &mut NotificationState, now: Timestamp) -> Option<String> {
    let MailStep::Send(Mail::Confirm(asker)) = state.take(now, "worker") else { return None };
    match state.enrolment.book(&asker.asking_of(&asker.name), &asker.network, now) {
        Asking::Allowed => state.accepted(now, WAIT, Kind::Confirmation),
        Asking::From(time) => {
            state.put_off(time);
            return None;
        }
        Asking::Never => return None,
    }
    Some(asker.name)
}

fn on() -> NotificationState {
    let mut state = NotificationState::default();
    state.enrol(address(true), NOW, WAIT);
    state
}

fn notify(state: &mut NotificationState, id: u64, now: Timestamp) -> Notified {
    state.notify(CommentId(id), &[Reason::Reply { subscribed: true }], "thread", now, WAIT)
}

fn choose(state: &mut NotificationState, wants: Wants) {
    state.enrolment.choose(wants, NOW);
    state.enrol(address(true), NOW, WAIT);
}

fn ids(ids: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    ids.into_iter().collect()
}

#[test]
fn one_email_has_everything_that_gathered_within_the_wait() {
    let mut state = on();
    assert_eq!(state.take(NOW, "worker"), MailStep::Nothing);
    assert_eq!(notify(&mut state, 1, NOW), Notified::Added);
    assert_eq!(notify(&mut state, 2, NOW + WAIT / 2), Notified::Added);
    let early = NOW + WAIT - Duration::from_millis(1);
    assert_eq!(state.take(early, "worker"), MailStep::Wait(NOW + WAIT));
    assert_eq!(state.take(NOW + WAIT, "worker"), MailStep::Send(Mail::Notify(ids([1, 2]), 0)));
    state.accepted(NOW + WAIT, WAIT, Kind::Notifications);
    assert_eq!((state.take(NOW + DAY, "worker"), state.due()), (MailStep::Nothing, None));
}

#[test]
fn a_comment_is_mailed_once_however_often_its_event_comes() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    assert_eq!(notify(&mut state, 1, NOW), Notified::Waiting);
    state.take(NOW + MINUTE, "worker");
    assert_eq!(notify(&mut state, 1, NOW + MINUTE), Notified::Waiting);
    state.accepted(NOW + MINUTE, WAIT, Kind::Notifications);
    for later in [NOW + MINUTE, NOW + DAY, NOW + DAY + HOUR] {
        assert_eq!(notify(&mut state, 1, later), Notified::No);
    }
}

#[test]
fn comments_that_arrive_while_an_email_is_sent_go_with_the_next_one() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    state.take(NOW + MINUTE, "worker");
    notify(&mut state, 2, NOW + MINUTE);
    assert_eq!(state.take(NOW + MINUTE, "second"), MailStep::Wait(NOW + MINUTE + CLAIM));
    state.accepted(NOW + MINUTE, WAIT, Kind::Notifications);
    assert_eq!(state.due(), Some(NOW + 16 * MINUTE));
    assert_eq!(state.take(NOW + 16 * MINUTE, "worker"), MailStep::Send(Mail::Notify(ids([2]), 0)));
}

#[test]
fn waits_grow_and_a_day_has_at_most_ten_emails() {
    let (mut state, mut now, mut mails) = (on(), NOW, Vec::new());
    for id in 0..100 {
        notify(&mut state, id, now);
        now = state.due().unwrap();
        assert!(matches!(state.take(now, "worker"), MailStep::Send(Mail::Notify(..))));
        state.accepted(now, WAIT, Kind::Notifications);
        mails.push(now);
    }
    let waits: Vec<u64> = mails.windows(2).take(4).map(|pair| pair[1].since(pair[0]).as_secs() / 60).collect();
    assert_eq!(waits, [15, 60, 360, 360]);
    for at in &mails {
        assert!(mails.iter().filter(|other| (*at..*at + DAY).contains(*other)).count() <= MAX_MAILS);
    }
    // The daily limit holds even with the shortest waits.
    state.schedule.sent = (0..10).map(|n| now + Duration::from_millis(n)).collect();
    assert!(state.schedule.next(now + MINUTE, WAIT) >= now + DAY);
}

#[test]
fn an_email_lists_a_hundred_comments_and_counts_the_rest() {
    let mut state = on();
    for id in 0..1_000 {
        notify(&mut state, id, NOW);
    }
    assert_eq!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Notify(ids(0..100), 900)));
}

#[test]
fn an_email_whose_worker_died_is_sent_exactly_once_more() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    assert_eq!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
    let (dead, mail) = (NOW + MINUTE + CLAIM, state.mail());
    assert_eq!(state.take(dead - Duration::from_millis(1), "second"), MailStep::Wait(dead));
    assert_eq!(state.take(dead, "second"), MailStep::Send(Mail::Notify(ids([1]), 0)));
    assert_eq!(state.mail(), mail, "mail programs show the two as one");
    assert_eq!(state.take(dead + CLAIM, "third"), MailStep::Nothing);
    assert_eq!(notify(&mut state, 1, dead + CLAIM), Notified::No);
    notify(&mut state, 2, dead + CLAIM);
    state.take(state.due().unwrap(), "worker");
    assert_ne!(state.mail(), mail);
}

#[test]
fn a_worker_that_takes_an_item_twice_gets_the_same_email() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    let taken = state.take(NOW + MINUTE, "worker");
    let before = state.clone();
    assert_eq!((state.take(NOW + MINUTE, "worker"), &state), (taken, &before));
    assert!(state.is_claimed_by("worker") && !state.is_claimed_by("second"));
}

#[test]
fn a_refused_email_is_retried_for_a_day_with_growing_pauses() {
    let (mut state, mut now, mut pauses) = (on(), NOW + MINUTE, Vec::new());
    notify(&mut state, 1, NOW);
    loop {
        assert_eq!(state.take(now, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
        state.refused(now, WAIT);
        let Some(due) = state.due() else { break };
        pauses.push(due.since(now).as_secs());
        now = due;
    }
    assert_eq!(pauses[..6], [5, 60, 300, 1_800, 3_600, 3_600]);
    assert!((23 * HOUR..=25 * HOUR).contains(&now.since(NOW)), "{pauses:?}");
    assert_eq!(notify(&mut state, 1, now), Notified::No);
    assert_eq!(notify(&mut state, 2, now), Notified::Added);
}

#[test]
fn comments_written_while_the_server_refuses_emails_are_tried_for_their_own_day() {
    let id = |at: Timestamp| CommentId::slots(at, 0).unwrap().next().unwrap().0;
    let (first, later, last) = (id(NOW), id(NOW + 20 * HOUR), id(NOW + 25 * HOUR));
    let (mut state, mut now) = (on(), NOW + MINUTE);
    notify(&mut state, first, NOW);
    while let MailStep::Send(Mail::Notify(tried, _)) = state.take(now, "worker") {
        if now >= NOW + 20 * HOUR && !tried.contains(&later) {
            notify(&mut state, later, now);
        }
        if !tried.contains(&first) {
            break;
        }
        if now.since(NOW) >= DAY {
            notify(&mut state, last, now);
        }
        state.refused(now, WAIT);
        now = state.due().unwrap();
    }
    assert_eq!(state.schedule.in_flight, ids([later, last]));
    state.refused(now, WAIT);
    while now.since(NOW) < 44 * HOUR {
        now = state.due().unwrap();
        assert_eq!(state.take(now, "worker"), MailStep::Send(Mail::Notify(ids([later, last]), 0)));
        state.refused(now, WAIT);
    }
}

#[test]
fn an_address_gets_one_confirmation_a_day_and_three_a_week_of_which_a_network_causes_two() {
    for (networks, expected) in [(1, [0, 1, 7, 8, 14, 15]), (8, [0, 1, 2, 7, 8, 9])] {
        let (mut state, mut days) = (NotificationState::default(), Vec::new());
        for hour in 0..24 * 16 {
            let (now, name) = (NOW + hour * HOUR, hour.to_string());
            let network = (hour % networks).to_string();
            state.ask(asker(&name, &network), now, Duration::ZERO);
            if confirmation(&mut state, now).is_some() {
                days.push(hour / 24);
            }
        }
        assert_eq!(days[..6], expected, "{networks} networks");
    }
}

#[test]
fn the_owner_gets_the_next_confirmation_however_often_a_stranger_asks() {
    let mut state = asked("stranger");
    state.ask(asker("ada", "elsewhere"), NOW, WAIT);
    let mut sent = Vec::new();
    for hour in 0..72 {
        let now = NOW + MINUTE + hour * HOUR;
        state.ask(asker(&format!("stranger {hour}"), "home"), now, WAIT);
        sent.extend(confirmation(&mut state, now));
    }
    assert_eq!(sent[1], Asker::of(&guest("ada")));
}

#[test]
fn at_most_ten_networks_wait_for_a_confirmation_and_each_only_once() {
    let mut state = asked("first");
    for browser in 0..30 {
        state.ask(asker(&browser.to_string(), "home"), NOW, WAIT);
    }
    assert_eq!(
        state.enrolment.askers.iter().map(|asker| asker.name.as_str()).collect::<Vec<_>>(),
        [Asker::of(&guest("29"))]
    );
    for network in 0..30 {
        state.ask(asker(&format!("of {network}"), &network.to_string()), NOW, WAIT);
    }
    assert_eq!(state.enrolment.askers.len(), MAX_ASKING);
}

#[test]
fn a_confirmation_covers_the_visitor_who_asked_and_no_other() {
    let (ada, eve) = (Asker::of(&guest("ada")), Asker::of(&guest("eve")));
    let mut state = asked("ada");
    state.ask(asker("eve", "elsewhere"), NOW, WAIT);
    answer(&mut state, "eve", 1, NOW);
    assert_eq!(answer(&mut state, "nobody", 2, NOW), Notified::No);
    assert!(state.confirm(&ada, NOW + MINUTE, WAIT));
    assert_eq!(answer(&mut state, "ada", 3, NOW + MINUTE), Notified::Added);
    assert_eq!(answer(&mut state, "eve", 4, NOW + MINUTE), Notified::Added);
    let asks = |name: &str, known: &NotificationState| {
        MailStep::Send(Mail::Confirm(known.enrolment.asker(name).unwrap().clone()))
    };
    assert_eq!(state.take(NOW + MINUTE, "worker"), asks(&eve, &state));
    state.accepted(NOW + MINUTE, WAIT, Kind::Confirmation);
    assert_eq!(state.take(NOW + 2 * MINUTE, "worker"), MailStep::Send(Mail::Notify(ids([3]), 0)));
    state.accepted(NOW + 2 * MINUTE, WAIT, Kind::Notifications);
    assert!(state.confirm(&eve, NOW + DAY, WAIT));
    assert_eq!(state.take(NOW + 2 * DAY, "worker"), MailStep::Send(Mail::Notify(ids([1, 4]), 0)));
}

#[test]
fn a_confirmed_visitor_needs_no_second_confirmation() {
    let ada = Asker::of(&guest("ada"));
    let mut state = asked("ada");
    state.confirm(&ada, NOW, WAIT);
    let before = state.clone();
    state.ask(asker("ada", "elsewhere"), NOW + 30 * DAY, WAIT);
    assert_eq!((state.enrolment.has_heard(&ada, NOW + 30 * DAY), state), (true, before));
}

#[test]
fn a_member_claims_one_address_at_a_time() {
    let claimed = |name: &str| Asker::new(name.to_owned(), address(false), "home".to_owned(), None);
    let mut state = NotificationState::default();
    state.claim_address(claimed("first"), NOW, WAIT);
    assert_eq!(notify(&mut state, 1, NOW), Notified::Added);
    state.claim_address(claimed("second"), NOW, WAIT);
    assert!(!state.confirm("first", NOW, WAIT) && state.confirm("second", NOW, WAIT));
    assert_eq!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
}

#[test]
fn notices_from_before_the_confirmation_are_sent_after_it() {
    let mut state = asked("ada");
    assert_eq!(answer(&mut state, "ada", 1, NOW), Notified::Added);
    assert_eq!(answer(&mut state, "ada", 1, NOW), Notified::Waiting);
    assert!(confirmation(&mut state, NOW + MINUTE).is_some());
    assert_eq!(state.take(NOW + DAY, "worker"), MailStep::Nothing);
    assert!(state.confirm(&Asker::of(&guest("ada")), NOW + DAY, WAIT));
    assert_eq!(state.due(), Some(NOW + DAY + MINUTE));
    assert_eq!(state.take(NOW + 2 * DAY, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
}

#[test]
fn notices_are_sent_although_the_result_of_the_confirmation_is_unknown() {
    let claimed = || Asker::new("ada".to_owned(), address(false), "home".to_owned(), None);
    for by_its_link in [false, true] {
        let mut state = NotificationState::default();
        state.claim_address(claimed(), NOW, WAIT);
        notify(&mut state, 1, NOW);
        assert!(matches!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Confirm(_))));
        if by_its_link {
            state.confirm("ada", NOW + MINUTE, WAIT);
        } else {
            state.enrol(address(true), NOW + MINUTE, WAIT);
        }
        assert_eq!(state.take(NOW + CLAIM + MINUTE, "second"), MailStep::Send(Mail::Notify(ids([1]), 0)));
        assert!(!state.is_claimed_by("worker"));
    }
}

#[test]
fn a_confirmation_is_sent_at_most_twice_and_keeps_its_name() {
    let mut state = asked("ada");
    assert!(matches!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Confirm(_))));
    let (dead, mail) = (NOW + MINUTE + CLAIM, state.mail());
    assert!(matches!(state.take(dead, "second"), MailStep::Send(Mail::Confirm(_))));
    assert_eq!(state.mail(), mail);
    assert_eq!(state.take(dead + CLAIM, "third"), MailStep::Nothing);
}

#[test]
fn a_comment_left_out_because_its_text_waits_is_mailed_once_it_is_accepted() {
    let accept = |state: &mut NotificationState, now| {
        let reasons = [Reason::Reply { subscribed: true }];
        state.notify_accepted(CommentId(1), &reasons, "thread", now, WAIT)
    };
    for accepted_while_it_is_sent in [false, true] {
        let mut state = on();
        assert_eq!(accept(&mut state, NOW), Notified::No, "nobody was to be notified of the comment");
        notify(&mut state, 1, NOW);
        notify(&mut state, 2, NOW);
        state.take(NOW + MINUTE, "worker");
        if accepted_while_it_is_sent {
            assert_eq!(accept(&mut state, NOW + MINUTE), Notified::Waiting);
        }
        state.set_aside(&ids([1]));
        state.accepted(NOW + MINUTE, WAIT, Kind::Notifications);
        if !accepted_while_it_is_sent {
            assert_eq!(state.due(), None);
            assert_eq!(accept(&mut state, NOW + HOUR), Notified::Added);
        }
        assert_eq!(state.take(NOW + DAY, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
        state.accepted(NOW + DAY, WAIT, Kind::Notifications);
        assert_eq!(accept(&mut state, NOW + DAY), Notified::No);
        assert_eq!((state.due(), state.schedule.aside), (None, ids([])));
    }
}

#[test]
fn the_newest_hundred_that_were_left_out_are_mailed_once_they_are_accepted() {
    let accept = |state: &mut NotificationState, id: u64, now: Timestamp| {
        let reasons = [Reason::Reply { subscribed: true }];
        state.notify_accepted(CommentId(id), &reasons, "thread", now, WAIT)
    };
    let (mut state, mut now) = (on(), NOW);
    for id in 1..=101 {
        notify(&mut state, id, now);
        now = state.due().unwrap();
        state.take(now, "worker");
        state.set_aside(&ids([id]));
        state.dropped(now, WAIT, Kind::Notifications);
    }
    assert_eq!(accept(&mut state, 1, now), Notified::No);
    assert_eq!(accept(&mut state, 2, now), Notified::Added);
    assert_eq!(accept(&mut state, 101, now), Notified::Added);
}

#[test]
fn a_visitor_whose_confirmation_is_being_sent_is_not_displaced_by_others_in_the_network() {
    let mut state = asked("ada");
    assert!(matches!(state.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Confirm(_))));
    state.ask(asker("bob", "home"), NOW + MINUTE, WAIT);
    state.ask(asker("carl", "home"), NOW + MINUTE, WAIT);
    state.accepted(NOW + MINUTE, WAIT, Kind::Confirmation);
    assert!(state.confirm(&Asker::of(&guest("ada")), NOW + HOUR, WAIT));
    let waits = state.enrolment.askers.iter().filter(|asker| asker.waits());
    assert_eq!(waits.map(|asker| asker.name.as_str()).collect::<Vec<_>>(), [Asker::of(&guest("carl"))]);
}

#[test]
fn networks_are_forgotten_after_a_confirmation_or_an_unsubscribe() {
    let mut state = asked("ada");
    assert!(confirmation(&mut state, NOW + MINUTE).is_some());
    state.confirm(&Asker::of(&guest("ada")), NOW + HOUR, WAIT);
    assert!(state.enrolment.askers.iter().all(|asker| asker.network.is_empty()));
    state.stop(NOW + HOUR, None);
    assert!(!format!("{state:?}").contains("home"), "{state:?}");
}

/// A time of a clock that is far ahead.
const AHEAD: Timestamp = Timestamp(NOW.0 + 400 * 24 * 3_600_000);

#[test]
fn emails_of_a_clock_that_was_ahead_do_not_delay_later_ones() {
    let mut state = on();
    notify(&mut state, 1, AHEAD);
    state.take(AHEAD + WAIT, "worker");
    state.accepted(AHEAD + WAIT, WAIT, Kind::Notifications);
    notify(&mut state, 2, AHEAD + WAIT);
    let mut scheduled_again = state.clone();
    assert_eq!(state.take(NOW, "worker"), MailStep::Send(Mail::Notify(ids([2]), 0)));
    state.accepted(NOW, WAIT, Kind::Notifications);
    assert_eq!(state.schedule.sent, [NOW]);
    notify(&mut state, 3, NOW);
    assert_eq!(state.due(), Some(NOW + 15 * MINUTE));

    notify(&mut scheduled_again, 3, NOW);
    assert_eq!(scheduled_again.due(), Some(NOW + WAIT));
}

#[test]
fn a_digest_of_a_clock_that_was_ahead_does_not_delay_the_next_one() {
    let mut state = NotificationState::default();
    state.alert(CommentId(1), 1, AHEAD, WAIT);
    state.take(AHEAD + WAIT, "worker");
    state.accepted(AHEAD + WAIT, WAIT, Kind::Digest);
    for id in [2, 3] {
        state.alert(CommentId(id), id, NOW, WAIT);
        assert_eq!(state.due(), Some(NOW + WAIT));
        state.schedule.due = Some(AHEAD);
    }
}

#[test]
fn a_claim_of_a_clock_that_was_ahead_ends_soon_but_not_while_its_worker_may_send() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    state.take(AHEAD, "worker");
    assert_eq!(state.take(NOW, "second"), MailStep::Wait(NOW + CLAIM));
    assert_eq!(state.take(NOW + CLAIM, "second"), MailStep::Send(Mail::Notify(ids([1]), 0)));
}

#[test]
fn an_email_refused_while_the_clock_was_ahead_is_retried_for_a_day() {
    let (mut state, mut now) = (on(), NOW);
    notify(&mut state, 1, NOW);
    state.take(AHEAD, "worker");
    state.refused(AHEAD, WAIT);
    while state.take(now, "worker") != MailStep::Nothing {
        state.refused(now, WAIT);
        now = state.due().unwrap_or(now);
        assert!(now.since(NOW) <= 25 * HOUR);
    }
    assert!(now.since(NOW) >= 23 * HOUR);
}

#[test]
fn confirmations_of_a_clock_that_was_ahead_do_not_prevent_later_ones() {
    let mut waiting = NotificationState::default();
    waiting.ask(asker("ada", "home"), AHEAD, WAIT);
    let mut sent = waiting.clone();
    let ada = Some(Asker::of(&guest("ada")));
    assert_eq!(confirmation(&mut waiting, NOW), ada);

    assert_eq!(confirmation(&mut sent, AHEAD + WAIT), ada);
    sent.ask(asker("ada", "home"), NOW, WAIT);
    assert_eq!(confirmation(&mut sent, NOW + WAIT), ada);
    sent.ask(asker("eve", "elsewhere"), NOW, WAIT);
    assert_eq!(confirmation(&mut sent, NOW + WAIT), None, "an address gets one confirmation a day");
    assert_eq!(confirmation(&mut sent, AHEAD + HOUR), Some(Asker::of(&guest("eve"))));
}

#[test]
fn unsubscribing_is_dated_again_after_a_clock_was_ahead() {
    let (mut state, mut right) = (on(), on());
    state.stop(AHEAD, None);
    for stopped in [&mut state, &mut right] {
        stopped.stop(NOW, None);
    }
    assert_eq!(state, right);
}

#[test]
fn only_the_member_can_turn_an_unsubscribed_recipient_on_again() {
    let mut state = on();
    notify(&mut state, 1, NOW);
    state.stop(NOW, None);
    assert_eq!((state.enrolment.status, &state.enrolment.address), (Status::Off, &None));
    assert_eq!(state.take(NOW + DAY, "worker"), MailStep::Nothing);
    let stopped = state.clone();
    state.forget();
    assert_eq!(state, stopped);
    state.enrol(address(true), NOW, WAIT);
    assert_eq!((state.enrolment.status, &state.enrolment.address), (Status::Off, &None));
    state.ask(asker("ada", "home"), NOW, WAIT);
    assert!(!state.confirm(&Asker::of(&guest("ada")), NOW, WAIT));
    assert_eq!(state.enrolment.book("ada", "home", NOW), Asking::Never);
    choose(&mut state, Wants { replies: true, ..Wants::default() });
    assert_eq!(state.enrolment.status, Status::On);
    assert!(
        state.enrolment.wants_to_know(&Reason::Reply { subscribed: false })
            && !state.enrolment.wants_to_know(&Reason::Mention)
    );
}

#[test]
fn unsubscribing_the_address_stops_members_who_have_not_chosen_since() {
    let (mut owner, mut member) = (on(), on());
    owner.stop(NOW, None);
    assert!(
        member.enrolment.is_stopped_by(&owner.enrolment, &address(true), NOW)
            && !member.enrolment.is_stopped_by(&on().enrolment, &address(true), NOW)
    );
    choose(&mut member, Wants::default());
    member.forget();
    assert!(!member.enrolment.is_stopped_by(&owner.enrolment, &address(true), NOW));
    assert!(member.enrolment.is_stopped_by(&owner.enrolment, &address(false), NOW), "anybody may claim an address");
    owner.stop(NOW + MINUTE, None);
    assert!(member.enrolment.is_stopped_by(&owner.enrolment, &address(true), NOW));
    member.enrolment.choose(Wants::default(), AHEAD);
    assert!(member.enrolment.is_stopped_by(&owner.enrolment, &address(true), NOW));
    assert!(!member.enrolment.is_stopped_by(&owner.enrolment, &address(true), AHEAD));
}

#[test]
fn a_confirmed_address_is_remembered_after_unsubscribing_but_not_after_deleting_it() {
    let mut state = on();
    state.stop(NOW, Some("ada".to_owned()));
    state.stop(NOW, None);
    assert!(state.enrolment.has_proven("ada") && !state.enrolment.has_proven("eve"));
    choose(&mut state, Wants::default());
    state.forget();
    assert!(!state.enrolment.has_proven("ada"));
}

#[test]
fn a_bounced_address_stays_off_until_its_member_chooses_or_the_address_changes() {
    let mut state = on();
    state.bounce();
    state.enrol(address(true), NOW, WAIT);
    assert_eq!((state.enrolment.status, notify(&mut state, 1, NOW)), (Status::Bounced, Notified::No));
    let mut chosen = state.clone();
    choose(&mut chosen, Wants::default());
    assert_eq!((chosen.enrolment.status, &chosen.enrolment.address), (Status::On, &Some(address(true))));
    state.enrol(Address { sealed: "other".to_owned(), ..address(true) }, NOW, WAIT);
    assert_eq!(state.enrolment.status, Status::On);
}

#[test]
fn a_muted_thread_is_not_notified_and_the_hundred_latest_stay_muted() {
    let mut state = on();
    for thread in 0..=MAX_MUTED {
        state.enrolment.mute(&thread.to_string());
    }
    assert!(!state.enrolment.is_muted("0") && state.enrolment.is_muted("1") && state.enrolment.is_muted("100"));
    let reasons = [Reason::Reply { subscribed: true }];
    assert_eq!(state.notify(CommentId(1), &reasons, "100", NOW, WAIT), Notified::No);
}

#[test]
fn moderators_get_a_digest_an_hour_at_most() {
    let mut mods = NotificationState::default();
    assert_eq!(mods.alert(CommentId(1), 21, NOW, WAIT), Notified::Added);
    assert_eq!(mods.take(NOW + MINUTE, "worker"), MailStep::Send(Mail::Notify(ids([1]), 0)));
    mods.accepted(NOW + MINUTE, WAIT, Kind::Digest);
    assert_eq!(mods.alert(CommentId(1), 21, NOW + 2 * MINUTE, WAIT), Notified::No);
    assert_eq!(mods.due(), None);
    assert_eq!(mods.alert(CommentId(1), 22, NOW + 2 * MINUTE, WAIT), Notified::Added);
    assert_eq!(mods.due(), Some(NOW + MINUTE + HOUR));
}

#[test]
fn enrolment_and_schedule_are_attributes_of_one_item() {
    let mut state = on();
    for id in 1..=3 {
        notify(&mut state, id, NOW);
    }
    state.take(NOW + MINUTE, "worker");
    state.accepted(NOW + MINUTE, WAIT, Kind::Notifications);
    notify(&mut state, 4, NOW + HOUR);
    state.take(NOW + 2 * HOUR, "worker");
    notify(&mut state, 5, NOW + 2 * HOUR);
    (state.version, state.enrolment.muted) = (7, vec!["thread".to_owned()]);
    let mut item: Item = serde_dynamo::to_item(&state).unwrap();
    let numbers = |ids: &[u64]| AttributeValue::Ns(ids.iter().map(ToString::to_string).collect());
    let time = |time: Timestamp| AttributeValue::N(time.0.to_string());
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let map = |fields: &[(&str, &AttributeValue)]| {
        AttributeValue::M(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect())
    };
    let claim = map(&[("o", &text("worker")), ("u", &time(NOW + 2 * HOUR + CLAIM))]);
    let address = map(&[("a", &text("sealed")), ("l", &text("en")), ("c", &AttributeValue::Bool(true))]);
    let expected = [
        ("vn", AttributeValue::N("7".to_owned())),
        ("st", text("on")),
        ("ad", address),
        ("mu", AttributeValue::L(vec![text("thread")])),
        ("wt", numbers(&[5])),
        ("fl", numbers(&[4])),
        ("td", numbers(&[1, 2, 3])),
        ("ro", time(NOW + MINUTE)),
        ("cl", claim),
        ("se", AttributeValue::L(vec![time(NOW + MINUTE)])),
    ];
    let expected: HashMap<String, AttributeValue> =
        expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(item.inner(), &expected);
    item.insert("pk".to_owned(), text("E#u7"));
    assert_eq!(serde_dynamo::from_item::<_, NotificationState>(item).unwrap(), state);
}
