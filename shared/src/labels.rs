//! What the buttons and notices of a comment widget say, in the languages we speak. The same keys in each.

use std::cmp::Reverse;

use serde::{Serialize, Serializer};

/// The columns of [`LABELS`] after the key, English first: it is spoken when nothing else is asked for.
const LANGUAGES: [&str; 4] = ["en", "es", "de", "fr"];

#[rustfmt::skip]
const LABELS: &[[&str; 5]] = &[
    ["anonymous",          "Anonymous",                        "Anónimo",                                      "Anonym",                                         "Anonyme"],
    ["author",             "Author",                           "Autor",                                        "Autor",                                          "Auteur"],
    ["banned",             "You cannot comment at the moment", "Ahora no puedes comentar",                     "Du kannst zurzeit nicht kommentieren",           "Vous ne pouvez pas commenter pour le moment"],
    ["bold",               "Bold",                             "Negrita",                                      "Fett",                                           "Gras"],
    ["cancel",             "Cancel",                           "Cancelar",                                     "Abbrechen",                                      "Annuler"],
    ["code",               "Code",                             "Código",                                       "Code",                                           "Code"],
    ["comment",            "Comment",                          "Comentario",                                   "Kommentar",                                      "Commentaire"],
    ["comments",           "Comments",                         "Comentarios",                                  "Kommentare",                                     "Commentaires"],
    ["delete",             "Delete",                           "Eliminar",                                     "Löschen",                                        "Supprimer"],
    ["delete_confirm",     "Delete this comment?",             "¿Eliminar este comentario?",                   "Diesen Kommentar löschen?",                      "Supprimer ce commentaire ?"],
    ["edit",               "Edit",                             "Editar",                                       "Bearbeiten",                                     "Modifier"],
    ["edited",             "Edited",                           "Editado",                                      "Bearbeitet",                                     "Modifié"],
    ["emoji",              "Emoji",                            "Emoji",                                        "Emoji",                                          "Émoji"],
    ["error",              "Something went wrong",             "Algo ha salido mal",                           "Etwas ist schiefgelaufen",                       "Une erreur est survenue"],
    ["guest",              "Guest",                            "Invitado",                                     "Gast",                                           "Invité"],
    ["guest_email",        "Your e-mail address",              "Tu correo electrónico",                        "Deine E-Mail-Adresse",                           "Votre adresse e-mail"],
    ["guest_name",         "Your name",                        "Tu nombre",                                    "Dein Name",                                      "Votre nom"],
    ["inappropriate",      "Inappropriate",                    "Inapropiado",                                  "Unangemessen",                                   "Inapproprié"],
    ["italic",             "Italic",                           "Cursiva",                                      "Kursiv",                                         "Italique"],
    ["like",               "Like",                             "Me gusta",                                     "Gefällt mir",                                    "J’aime"],
    ["likes",              "Likes",                            "Me gusta",                                     "„Gefällt mir“-Angaben",                          "Mentions « J’aime »"],
    ["link",               "Link",                             "Enlace",                                       "Link",                                           "Lien"],
    ["list",               "List",                             "Lista",                                        "Liste",                                          "Liste"],
    ["load_more",          "Load more",                        "Cargar más",                                   "Mehr laden",                                     "Afficher plus"],
    ["moderator",          "Moderator",                        "Moderador",                                    "Moderator",                                      "Modérateur"],
    ["most_liked",         "Most liked",                       "Con más me gusta",                             "Beliebteste",                                    "Les plus aimés"],
    ["most_replied",       "Most replied",                     "Con más respuestas",                           "Meiste Antworten",                               "Les plus commentés"],
    ["newest",             "Newest",                           "Más recientes",                                "Neueste",                                        "Les plus récents"],
    ["no_comments",        "No comments yet",                  "Todavía no hay comentarios",                   "Noch keine Kommentare",                          "Aucun commentaire pour l’instant"],
    ["offensive",          "Offensive",                        "Ofensivo",                                     "Beleidigend",                                    "Offensant"],
    ["oldest",             "Oldest",                           "Más antiguos",                                 "Älteste",                                        "Les plus anciens"],
    ["other",              "Other",                            "Otro",                                         "Sonstiges",                                      "Autre"],
    ["pending_approval",   "Pending approval",                 "Pendiente de aprobación",                      "Wartet auf Freigabe",                            "En attente d’approbation"],
    ["pin",                "Pin",                              "Fijar",                                        "Anheften",                                       "Épingler"],
    ["pinned",             "Pinned",                           "Fijado",                                       "Angeheftet",                                     "Épinglé"],
    ["preview",            "Preview",                          "Vista previa",                                 "Vorschau",                                       "Aperçu"],
    ["quote",              "Quote",                            "Cita",                                         "Zitat",                                          "Citation"],
    ["read_only",          "Comments are closed",              "Los comentarios están cerrados",               "Die Kommentare sind geschlossen",                "Les commentaires sont fermés"],
    ["replies",            "Replies",                          "Respuestas",                                   "Antworten",                                      "Réponses"],
    ["reply",              "Reply",                            "Responder",                                    "Antworten",                                      "Répondre"],
    ["report",             "Report",                           "Denunciar",                                    "Melden",                                         "Signaler"],
    ["report_reason",      "Why are you reporting this?",      "¿Por qué lo denuncias?",                       "Warum meldest du das?",                          "Pourquoi signaler ce commentaire ?"],
    ["report_thanks",      "Thank you for your report",        "Gracias por tu denuncia",                      "Danke für deine Meldung",                        "Merci pour votre signalement"],
    ["reported",           "Reported",                         "Denunciado",                                   "Gemeldet",                                       "Signalé"],
    ["save",               "Save",                             "Guardar",                                      "Speichern",                                      "Enregistrer"],
    ["send",               "Post comment",                     "Publicar comentario",                          "Kommentar abschicken",                           "Publier le commentaire"],
    ["sign_in_to_comment", "Sign in to comment",               "Inicia sesión para comentar",                  "Melde dich an, um zu kommentieren",              "Connectez-vous pour commenter"],
    ["sort",               "Sort by",                          "Ordenar por",                                  "Sortieren nach",                                 "Trier par"],
    ["spam",               "Spam",                             "Spam",                                         "Spam",                                           "Spam"],
    ["subscribe",          "Notify me of replies",             "Avisarme de las respuestas",                   "Bei Antworten benachrichtigen",                  "Me prévenir des réponses"],
    ["unlike",             "Unlike",                           "Ya no me gusta",                               "Gefällt mir nicht mehr",                         "Je n’aime plus"],
    ["unpin",              "Unpin",                            "Dejar de fijar",                               "Lösen",                                          "Désépingler"],
    ["upload_image",       "Upload an image",                  "Subir una imagen",                             "Bild hochladen",                                 "Téléverser une image"],
    ["view_replies",       "View replies",                     "Ver respuestas",                               "Antworten anzeigen",                             "Voir les réponses"],
    ["write_comment",      "Write a comment…",                 "Escribe un comentario…",                       "Schreibe einen Kommentar…",                      "Écrivez un commentaire…"],
    ["write_reply",        "Write a reply…",                   "Escribe una respuesta…",                       "Schreibe eine Antwort…",                         "Écrivez une réponse…"],
];

/// Serialises as an object, key to label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    language: usize,
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(LABELS.iter().map(|row| (row[0], row[1 + self.language])))
    }
}

/// Labels in the language that an `Accept-Language` header prefers.
#[must_use]
pub fn labels(accept_language: Option<&str>) -> Labels {
    Labels { language: preferred(accept_language) }
}

/// The language of [`labels`], for `Content-Language`.
#[must_use]
pub fn language(accept_language: Option<&str>) -> &'static str {
    LANGUAGES[preferred(accept_language)]
}

/// The language of most weight, by RFC 9110 section 12.5.4. Of two with the same weight, the one named first.
fn preferred(accept_language: Option<&str>) -> usize {
    let ranges: Vec<(&str, u16)> = accept_language.unwrap_or_default().split(',').filter_map(parse_range).collect();
    let find = |wanted: &str| {
        ranges
            .iter()
            .enumerate()
            .filter(|(_, (primary, _))| primary.eq_ignore_ascii_case(wanted))
            .map(|(place, (_, weight))| (*weight, Reverse(place)))
            .max()
    };
    let any = find("*");
    LANGUAGES
        .iter()
        .enumerate()
        .filter_map(|(column, language)| {
            let (weight, place) = find(language).or(any)?;
            (weight > 0).then_some((weight, place, Reverse(column)))
        })
        .max()
        .map_or(0, |(_, _, Reverse(column))| column)
}

/// The primary tag (`de` of `de-AT`) and the weight in thousandths, or `None` for a range that is not well formed.
fn parse_range(range: &str) -> Option<(&str, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let primary = parts.next()?.split('-').next()?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => {
            let (name, value) = parameter.split_once('=')?;
            let is_weight = name.trim().eq_ignore_ascii_case("q");
            is_weight.then(|| parse_weight(value.trim())).flatten()?
        }
    };
    (!primary.is_empty() && parts.next().is_none()).then_some((primary, weight))
}

/// `0`, `0.5`, `1.000`: at most 1, at most three decimals.
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn no_label_is_empty() {
        for row in LABELS {
            assert!(row.iter().all(|cell| !cell.trim().is_empty()), "{row:?}");
        }
    }

    #[test]
    fn keys_are_unique_and_in_order() {
        assert!(LABELS.is_sorted_by(|one, other| one[0] < other[0]));
    }

    #[test]
    fn every_language_serialises_the_same_keys() {
        let keys = |language| -> BTreeSet<String> {
            let json = serde_json::to_string(&labels(Some(language))).expect("labels serialise");
            let map: BTreeMap<String, String> = serde_json::from_str(&json).expect("an object");
            map.into_keys().collect()
        };
        for language in LANGUAGES {
            assert_eq!(keys(language), keys("en"));
            assert_eq!(keys(language).len(), LABELS.len());
        }
    }

    #[test]
    fn the_labels_are_in_the_language_asked_for() {
        let reply = |language| {
            let json = serde_json::to_value(labels(Some(language))).expect("labels serialise");
            json["cancel"].as_str().map(str::to_owned)
        };
        assert_eq!(reply("en").as_deref(), Some("Cancel"));
        assert_eq!(reply("es").as_deref(), Some("Cancelar"));
        assert_eq!(reply("de").as_deref(), Some("Abbrechen"));
        assert_eq!(reply("fr").as_deref(), Some("Annuler"));
    }

    #[test]
    fn the_language_of_most_weight_is_spoken() {
        for (header, expected) in [
            ("de", "de"),
            ("DE", "de"),
            ("de-AT", "de"),
            ("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"),
            ("en;q=0.2,es;q=0.9", "es"),
            ("en ; q=0.2 , es ; Q=0.201", "es"),
            ("es, de", "es"),
            ("de, es", "de"),
            ("it, pt;q=0.9, de;q=0.1", "de"),
            ("de;q=0.1, de-AT", "de"),
        ] {
            assert_eq!(language(Some(header)), expected, "{header}");
        }
    }

    #[test]
    fn a_star_stands_for_the_languages_not_named() {
        for (header, expected) in [
            ("*", "en"),
            ("it, *;q=0.1", "en"),
            ("de;q=0.5, *", "en"),
            ("en;q=0.5, *", "es"),
            ("en;q=0, es;q=0, *;q=0.1", "de"),
            ("fr, *;q=0", "fr"),
        ] {
            assert_eq!(language(Some(header)), expected, "{header}");
        }
    }

    #[test]
    fn a_weight_of_zero_excludes() {
        assert_eq!(language(Some("de;q=0, fr;q=0.1")), "fr");
        assert_eq!(language(Some("de;q=0.000")), "en");
    }

    #[test]
    fn english_is_spoken_when_nothing_else_is_asked_for() {
        for header in [None, Some(""), Some("it"), Some("deutsch"), Some("xx-de")] {
            assert_eq!(language(header), "en", "{header:?}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_ignored() {
        for header in [
            "de;q=2",
            "de;q=1.1",
            "de;q=0.1234",
            "de;q=-1",
            "de;q=NaN",
            "de;q=",
            "de;q",
            "de;x=1",
            "de;q=1;q=1",
            ";q=1",
            "-de",
            ",,;;==",
            "é\u{0}*",
            "de;q=+0",
            "de;q=0.+1",
        ] {
            assert_eq!(language(Some(header)), "en", "{header}");
            assert_eq!(language(Some(&format!("{header}, fr;q=0.1"))), "fr", "{header}");
        }
    }
}
