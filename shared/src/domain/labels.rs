//! The texts of a comment widget's buttons and notices, in every supported language.

use serde::{Serialize, Serializer};

use crate::domain::language::Language;

/// Rows of a key and its label in each of [`Language::ALL`], in order of the keys.
#[rustfmt::skip]
const LABELS: &[[&str; 5]] = &[
    ["anonymous",           "Anonymous",                         "Anónimo",                                    "Anonym",                                 "Anonyme"],
    ["author",              "Author",                            "Autor",                                      "Autor",                                  "Auteur"],
    ["banned",              "You cannot comment at the moment",  "Ahora no puedes comentar",                   "Du kannst zurzeit nicht kommentieren",   "Vous ne pouvez pas commenter pour le moment"],
    ["bold",                "Bold",                              "Negrita",                                    "Fett",                                   "Gras"],
    ["cancel",              "Cancel",                            "Cancelar",                                   "Abbrechen",                              "Annuler"],
    ["code",                "Code",                              "Código",                                     "Code",                                   "Code"],
    ["comment",             "Comment",                           "Comentario",                                 "Kommentar",                              "Commentaire"],
    ["comments",            "Comments",                          "Comentarios",                                "Kommentare",                             "Commentaires"],
    ["delete",              "Delete",                            "Eliminar",                                   "Löschen",                                "Supprimer"],
    ["delete_confirm",      "Delete this comment?",              "¿Eliminar este comentario?",                 "Diesen Kommentar löschen?",              "Supprimer ce commentaire ?"],
    ["deleted",             "This comment was deleted",          "Este comentario se eliminó",                 "Dieser Kommentar wurde gelöscht",        "Ce commentaire a été supprimé"],
    ["edit",                "Edit",                              "Editar",                                     "Bearbeiten",                             "Modifier"],
    ["edited",              "Edited",                            "Editado",                                    "Bearbeitet",                             "Modifié"],
    ["emoji",               "Emoji",                             "Emoji",                                      "Emoji",                                  "Émoji"],
    ["error",               "Something went wrong",              "Algo ha salido mal",                         "Etwas ist schiefgelaufen",               "Une erreur est survenue"],
    ["guest",               "Guest",                             "Invitado",                                   "Gast",                                   "Invité"],
    ["guest_email",         "Your e-mail address",               "Tu correo electrónico",                      "Deine E-Mail-Adresse",                   "Votre adresse e-mail"],
    ["guest_name",          "Your name",                         "Tu nombre",                                  "Dein Name",                              "Votre nom"],
    ["image_description",   "Describe the image",                "Describe la imagen",                         "Beschreibe das Bild",                    "Décrivez l’image"],
    ["inappropriate",       "Inappropriate",                     "Inapropiado",                                "Unangemessen",                           "Inapproprié"],
    ["italic",              "Italic",                            "Cursiva",                                    "Kursiv",                                 "Italique"],
    ["like",                "Like",                              "Me gusta",                                   "Gefällt mir",                            "J’aime"],
    ["likes",               "Likes",                             "Me gusta",                                   "„Gefällt mir“-Angaben",                  "Mentions « J’aime »"],
    ["link",                "Link",                              "Enlace",                                     "Link",                                   "Lien"],
    ["list",                "List",                              "Lista",                                      "Liste",                                  "Liste"],
    ["load_more",           "Load more",                         "Cargar más",                                 "Mehr laden",                             "Afficher plus"],
    ["mail_asked",          "A mail asks you to confirm this address:", "Un correo te pide que confirmes esta dirección:", "Eine Mail bittet dich, diese Adresse zu bestätigen:", "Un mail vous demande de confirmer cette adresse :"],
    ["mail_bounced",        "This address takes no mails:",      "Esta dirección no acepta correos:",          "Diese Adresse nimmt keine Mails an:",    "Cette adresse n’accepte pas de mails :"],
    ["mail_off",            "You get no mails.",                 "No recibes correos.",                        "Du bekommst keine Mails.",               "Vous ne recevez pas de mails."],
    ["mail_on",             "Mails go to this address:",         "Los correos van a esta dirección:",          "Mails gehen an diese Adresse:",          "Les mails vont à cette adresse :"],
    ["mention",             "Mention someone",                   "Mencionar a alguien",                        "Jemanden erwähnen",                      "Mentionner quelqu’un"],
    ["moderator",           "Moderator",                         "Moderador",                                  "Moderator",                              "Modérateur"],
    ["most_liked",          "Most liked",                        "Con más me gusta",                           "Beliebteste",                            "Les plus aimés"],
    ["most_replied",        "Most replied",                      "Con más respuestas",                         "Meiste Antworten",                       "Les plus commentés"],
    ["new_comment",         "new comment",                       "comentario nuevo",                           "neuer Kommentar",                        "nouveau commentaire"],
    ["new_comments",        "new comments",                      "comentarios nuevos",                         "neue Kommentare",                        "nouveaux commentaires"],
    ["newest",              "Newest",                            "Más recientes",                              "Neueste",                                "Les plus récents"],
    ["no_comments",         "No comments yet",                   "Todavía no hay comentarios",                 "Noch keine Kommentare",                  "Aucun commentaire pour l’instant"],
    ["notifications",       "Notifications",                     "Notificaciones",                             "Benachrichtigungen",                     "Notifications"],
    ["notify_forget",       "Forget my address and stop all mails", "Olvidar mi dirección y no enviar más correos", "Meine Adresse vergessen und keine Mails mehr schicken", "Oublier mon adresse et ne plus envoyer de mails"],
    ["notify_mentions",     "Comments that mention me",          "Comentarios que me mencionan",               "Kommentare, die mich erwähnen",          "Les commentaires qui me mentionnent"],
    ["notify_own_records",  "Comments on what I have published", "Comentarios sobre lo que he publicado",      "Kommentare zu dem, was ich veröffentlicht habe", "Les commentaires sur ce que j’ai publié"],
    ["notify_replies",      "Replies to my comments",            "Respuestas a mis comentarios",               "Antworten auf meine Kommentare",         "Les réponses à mes commentaires"],
    ["offensive",           "Offensive",                         "Ofensivo",                                   "Beleidigend",                            "Offensant"],
    ["offline",             "No connection",                     "Sin conexión",                               "Keine Verbindung",                       "Pas de connexion"],
    ["oldest",              "Oldest",                            "Más antiguos",                               "Älteste",                                "Les plus anciens"],
    ["other",               "Other",                             "Otro",                                       "Sonstiges",                              "Autre"],
    ["payload_too_large",   "The image is too large",            "La imagen es demasiado grande",              "Das Bild ist zu groß",                   "L’image est trop volumineuse"],
    ["pending_approval",    "Pending approval",                  "Pendiente de aprobación",                    "Wartet auf Freigabe",                    "En attente d’approbation"],
    ["pin",                 "Pin",                               "Fijar",                                      "Anheften",                               "Épingler"],
    ["pinned",              "Pinned",                            "Fijado",                                     "Angeheftet",                             "Épinglé"],
    ["posted",              "Comment posted",                    "Comentario publicado",                       "Kommentar veröffentlicht",               "Commentaire publié"],
    ["preview",             "Preview",                           "Vista previa",                               "Vorschau",                               "Aperçu"],
    ["quote",               "Quote",                             "Cita",                                       "Zitat",                                  "Citation"],
    ["rate_limited",        "Too many requests. Wait a moment.", "Demasiadas solicitudes. Espera un momento.", "Zu viele Anfragen. Warte einen Moment.", "Trop de requêtes. Patientez un instant."],
    ["read_only",           "Comments are closed",               "Los comentarios están cerrados",             "Die Kommentare sind geschlossen",        "Les commentaires sont fermés"],
    ["replies",             "Replies",                           "Respuestas",                                 "Antworten",                              "Réponses"],
    ["reply",               "Reply",                             "Responder",                                  "Antworten",                              "Répondre"],
    ["report",              "Report",                            "Denunciar",                                  "Melden",                                 "Signaler"],
    ["report_details",      "Details (optional)",                "Detalles (opcional)",                        "Einzelheiten (freiwillig)",              "Détails (facultatif)"],
    ["report_reason",       "Why are you reporting this?",       "¿Por qué lo denuncias?",                     "Warum meldest du das?",                  "Pourquoi signaler ce commentaire ?"],
    ["report_thanks",       "Thank you for your report",         "Gracias por tu denuncia",                    "Danke für deine Meldung",                "Merci pour votre signalement"],
    ["reported",            "Reported",                          "Denunciado",                                 "Gemeldet",                               "Signalé"],
    ["retry",               "Try again",                         "Reintentar",                                 "Erneut versuchen",                       "Réessayer"],
    ["save",                "Save",                              "Guardar",                                    "Speichern",                              "Enregistrer"],
    ["send",                "Post comment",                      "Publicar comentario",                        "Kommentar abschicken",                   "Publier le commentaire"],
    ["sign_in_to_comment",  "Sign in to comment",                "Inicia sesión para comentar",                "Melde dich an, um zu kommentieren",      "Connectez-vous pour commenter"],
    ["sort",                "Sort by",                           "Ordenar por",                                "Sortieren nach",                         "Trier par"],
    ["spam",                "Spam",                              "Spam",                                       "Spam",                                   "Spam"],
    ["spam_rejected",       "This looks like spam",              "Esto parece spam",                           "Das sieht nach Spam aus",                "Cela ressemble à du spam"],
    ["subscribe",           "Notify me of replies",              "Avisarme de las respuestas",                 "Bei Antworten benachrichtigen",          "Me prévenir des réponses"],
    ["unlike",              "Unlike",                            "Ya no me gusta",                             "Gefällt mir nicht mehr",                 "Je n’aime plus"],
    ["unpin",               "Unpin",                             "Dejar de fijar",                             "Lösen",                                  "Désépingler"],
    ["upload_image",        "Upload an image",                   "Subir una imagen",                           "Bild hochladen",                         "Téléverser une image"],
    ["uploading",           "Uploading",                         "Subiendo",                                   "Wird hochgeladen",                       "Téléversement"],
    ["view_replies",        "View replies",                      "Ver respuestas",                             "Antworten anzeigen",                     "Voir les réponses"],
    ["write_comment",       "Write a comment…",                  "Escribe un comentario…",                     "Schreibe einen Kommentar…",              "Écrivez un commentaire…"],
    ["write_reply",         "Write a reply…",                    "Escribe una respuesta…",                     "Schreibe eine Antwort…",                 "Écrivez une réponse…"],
];

/// The labels in one language. Serialises as an object from key to label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels(pub Language);

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let column = 1 + self.0 as usize;
        serializer.collect_map(LABELS.iter().map(|row| (row[0], row[column])))
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
            let json = serde_json::to_string(&Labels(language)).expect("labels serialise");
            let map: BTreeMap<String, String> = serde_json::from_str(&json).expect("an object");
            map.into_keys().collect()
        };
        for language in Language::ALL {
            assert_eq!(keys(language), keys(Language::English));
            assert_eq!(keys(language).len(), LABELS.len());
        }
    }

    #[test]
    fn the_labels_are_in_the_language_asked_for() {
        let reply = |language| {
            let json = serde_json::to_value(Labels(language)).expect("labels serialise");
            json["cancel"].as_str().map(str::to_owned)
        };
        assert_eq!(reply(Language::English).as_deref(), Some("Cancel"));
        assert_eq!(reply(Language::Spanish).as_deref(), Some("Cancelar"));
        assert_eq!(reply(Language::German).as_deref(), Some("Abbrechen"));
        assert_eq!(reply(Language::French).as_deref(), Some("Annuler"));
    }
}
