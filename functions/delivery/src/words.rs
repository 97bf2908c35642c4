//! The words of mails. Names in braces are filled in. Mails to people who asked for them are in their language. Nobody knows
//! the languages of moderators, who are addresses in a setting, so that mails to them are in English.

use shared::domain::language::Language;

pub(crate) struct Words {
    pub(crate) answered: &'static str,
    pub(crate) mentioned: &'static str,
    pub(crate) commented: &'static str,
    pub(crate) several: &'static str,
    pub(crate) more: &'static str,
    pub(crate) view: &'static str,
    pub(crate) mute: &'static str,
    pub(crate) stop: &'static str,
    pub(crate) why: &'static str,
    pub(crate) confirm_subject: &'static str,
    pub(crate) confirm: &'static str,
    pub(crate) confirm_link: &'static str,
    pub(crate) confirm_ignore: &'static str,
}

pub(crate) fn words(language: Language) -> &'static Words {
    match language {
        Language::English => &ENGLISH,
        Language::Spanish => &SPANISH,
        Language::German => &GERMAN,
        Language::French => &FRENCH,
    }
}

const ENGLISH: Words = Words {
    answered: "{name} answered your comment",
    mentioned: "{name} mentioned you",
    commented: "{name} wrote a comment",
    several: "{count} new comments",
    more: "And {count} more.",
    view: "Read it",
    mute: "No more mails about this page",
    stop: "Stop all mails",
    why: "You get this mail because you asked {site} to tell you of comments.",
    confirm_subject: "Confirm your address",
    confirm: "Somebody asked {site} to send mails about replies to this address. If that was you, please confirm the address.",
    confirm_link: "Confirm the address",
    confirm_ignore: "If it was not you, ignore this mail, or refuse all mails:",
};

const SPANISH: Words = Words {
    answered: "{name} ha respondido a tu comentario",
    mentioned: "{name} te ha mencionado",
    commented: "{name} ha escrito un comentario",
    several: "{count} comentarios nuevos",
    more: "Y {count} más.",
    view: "Leerlo",
    mute: "No recibir más correos sobre esta página",
    stop: "No recibir más correos",
    why: "Recibes este correo porque pediste a {site} que te avisara de los comentarios.",
    confirm_subject: "Confirma tu dirección",
    confirm: "Alguien ha pedido a {site} que envíe a esta dirección correos sobre respuestas. Si has sido tú, confirma la dirección.",
    confirm_link: "Confirmar la dirección",
    confirm_ignore: "Si no has sido tú, ignora este correo o rechaza todos los correos:",
};

const GERMAN: Words = Words {
    answered: "{name} hat auf deinen Kommentar geantwortet",
    mentioned: "{name} hat dich erwähnt",
    commented: "{name} hat einen Kommentar geschrieben",
    several: "{count} neue Kommentare",
    more: "Und {count} weitere.",
    view: "Lesen",
    mute: "Keine Mails mehr zu dieser Seite",
    stop: "Keine Mails mehr",
    why: "Du bekommst diese Mail, weil du {site} gebeten hast, dir von Kommentaren zu berichten.",
    confirm_subject: "Bestätige deine Adresse",
    confirm: "Jemand hat {site} gebeten, an diese Adresse Mails über Antworten zu schicken. Wenn du das warst, bestätige bitte die Adresse.",
    confirm_link: "Adresse bestätigen",
    confirm_ignore: "Wenn du es nicht warst, beachte diese Mail nicht weiter oder lehne alle Mails ab:",
};

const FRENCH: Words = Words {
    answered: "{name} a répondu à votre commentaire",
    mentioned: "{name} vous a mentionné",
    commented: "{name} a écrit un commentaire",
    several: "{count} nouveaux commentaires",
    more: "Et {count} de plus.",
    view: "Le lire",
    mute: "Ne plus recevoir de mails sur cette page",
    stop: "Ne plus recevoir de mails",
    why: "Vous recevez ce mail parce que vous avez demandé à {site} de vous signaler les commentaires.",
    confirm_subject: "Confirmez votre adresse",
    confirm: "Quelqu’un a demandé à {site} d’envoyer à cette adresse des mails sur les réponses. Si c’était vous, confirmez l’adresse.",
    confirm_link: "Confirmer l’adresse",
    confirm_ignore: "Si ce n’était pas vous, ignorez ce mail ou refusez tous les mails :",
};

/// Of mails to moderators.
pub(crate) mod moderators {
    pub(crate) const DIGEST_SUBJECT: &str = "Comments wait for moderators: {count}";
    pub(crate) const DIGEST: &str = "These comments on {site} wait for a decision.";
    pub(crate) const MODERATE: &str = "To the moderators' page";
    pub(crate) const WEBHOOK_SUBJECT: &str = "A webhook was disabled";
    pub(crate) const WEBHOOK_DISABLED: &str = "The webhook {url} has failed for five days, so it was disabled. Nothing is sent to it until a moderator enables it again.";
}

/// Fills in one name. What is filled in is not looked at again.
pub(crate) fn fill(template: &str, name: &str, value: &str) -> String {
    match template.split_once(&format!("{{{name}}}")) {
        Some((before, after)) => format!("{before}{value}{after}"),
        None => template.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_may_hold_braces() {
        assert_eq!(fill(ENGLISH.answered, "name", "{name}"), "{name} answered your comment");
    }

    #[test]
    fn every_language_fills_in_the_same_names() {
        for language in Language::ALL {
            let words = words(language);
            for (text, name) in [
                (words.answered, "{name}"),
                (words.mentioned, "{name}"),
                (words.commented, "{name}"),
                (words.several, "{count}"),
                (words.more, "{count}"),
                (words.why, "{site}"),
                (words.confirm, "{site}"),
            ] {
                assert_eq!(text.matches('{').count(), text.matches(name).count(), "{text}");
                assert_eq!(text.matches(name).count(), 1, "{text}");
            }
        }
    }
}
