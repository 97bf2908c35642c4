//! The HTML of a page of comments. It needs no scripts, and users' text is escaped.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use shared::app::thread_list::Neighbours;
use shared::config::Config;
use shared::domain::comment::Comment;
use shared::domain::ids::CommentId;
use shared::domain::language::Language;
use shared::domain::markdown;
use shared::domain::prose::as_typed;
use shared::domain::texts::Labels;
use shared::domain::thread::Thread;
use shared::domain::visible;
use shared::http::pagination::ListAddress;
use shared::policy;
use shared::store::lists::CommentWithReplies;

/// The style of full pages. A section in a host's page uses that page's style.
pub(crate) const STYLE: &str = include_str!("page.css");

/// Comments of one thread, as everyone sees them.
pub(crate) struct Section<'a> {
    pub(crate) config: &'a Config,
    pub(crate) language: Language,
    /// The address of the page, with the parameters that links keep.
    pub(crate) address: ListAddress,
    /// The canonical address of the record. `None` except on the first page of a thread.
    pub(crate) canonical: Option<String>,
    /// The address of the host page, if it is known.
    pub(crate) url: Option<String>,
    pub(crate) thread: Thread,
    pub(crate) comments: Vec<CommentWithReplies>,
    pub(crate) neighbours: Neighbours,
    /// The comment whose replies are listed, if any.
    pub(crate) parent: Option<CommentId>,
}

impl Section<'_> {
    fn labels(&self) -> Labels {
        Labels::of_widget(self.language)
    }

    fn say(&self, key: &str) -> &'static str {
        self.labels().text(key)
    }

    fn title(&self) -> &str {
        self.thread.known_title().unwrap_or(self.say("comments"))
    }

    /// Removes all loaded replies except those of `parent`. Links to their pages remain.
    pub(crate) fn leave_out_replies(&mut self) {
        for comment in self.comments.iter_mut().filter(|comment| Some(comment.comment.id) != self.parent) {
            comment.replies.clear();
        }
    }

    pub(crate) fn articles(&self) -> Vec<String> {
        let article = |shown: &CommentWithReplies| self.article(&shown.comment, &shown.replies).into_string();
        self.comments.iter().map(article).collect()
    }

    pub(crate) fn markup(&self, articles: &[String]) -> Markup {
        let Neighbours { prev, next } = &self.neighbours;
        html! {
            section.comment-thread
                lang=(self.language.tag())
                dir=(self.language.direction())
                aria-label=(self.say("comments")) {
                @if self.parent.is_some() {
                    p.pages { a href=(self.address.without("parent")) { (self.say("comments")) } }
                }
                @if articles.is_empty() && self.thread.parents == 0 { p.empty { (self.say("no_comments")) } }
                @for article in articles { (PreEscaped(article)) }
                @if prev.is_some() || next.is_some() {
                    p.pages {
                        @if let Some(prev) = prev { a rel="prev" href=(prev) { (self.say("previous_page")) } }
                        @if prev.is_some() && next.is_some() { " " }
                        @if let Some(next) = next { a rel="next" href=(next) { (self.say("next_page")) } }
                    }
                }
            }
        }
    }

    /// Renders a comment with the loaded replies, and a link to all replies if some are missing, except on the page of
    /// these replies.
    fn article(&self, comment: &Comment, replies: &[Comment]) -> Markup {
        let missing = comment.replies.saturating_sub(replies.len() as u64);
        html! {
            article id=(anchor(comment)) class=(self.classes(comment)) {
                @if comment.is_placeholder { p { (self.say("deleted")) } } @else { (self.content(comment)) }
                @for reply in replies { (self.article(reply, &[])) }
                @if missing > 0 && self.parent != Some(comment.id) {
                    p {
                        a.replies href=(self.address.with("parent", &comment.id.to_string())) {
                            (self.labels().plural("more_replies", missing))
                        }
                    }
                }
            }
        }
    }

    fn classes(&self, comment: &Comment) -> String {
        let classes = [
            (true, "comment"),
            (!comment.is_top_level(), "reply"),
            (self.is_pinned(comment), "pinned"),
            (comment.is_placeholder, "deleted"),
        ];
        classes.iter().filter(|(applies, _)| *applies).map(|(_, class)| *class).collect::<Vec<_>>().join(" ")
    }

    fn is_pinned(&self, comment: &Comment) -> bool {
        policy::shown_pin(self.config, &self.thread, comment).is_some()
    }

    fn content(&self, comment: &Comment) -> Markup {
        let name = if visible::shows_nothing(&comment.name) { self.say("anonymous") } else { &comment.name };
        let created_at = comment.id.created_at().to_string();
        let html = markdown::render(&comment.body, &self.config.users_route_prefix, &comment.mentions);
        html! {
            header {
                b.author dir="auto" { (name) }
                " "
                a href={ "#" (anchor(comment)) } {
                    time datetime=(created_at) { (created_at.split('T').next().unwrap_or_default()) }
                }
                @for label in self.marks(comment) { " " span.label { (self.say(label)) } }
            }
            div.body dir="auto" { (PreEscaped(as_typed(&html))) }
            @if comment.likes > 0 { p.likes { (self.say("likes")) " " (comment.likes) } }
        }
    }

    /// Returns the labels of a comment and its writer, such as `pinned` and `author`.
    fn marks(&self, comment: &Comment) -> impl Iterator<Item = &'static str> {
        let badges = self.config.features.badges;
        let marks = [
            (self.is_pinned(comment), "pinned"),
            (badges && policy::is_author(&self.thread, comment), "author"),
            (badges && comment.by_moderator, "moderator"),
            (comment.edited_at.is_some(), "edited"),
        ];
        marks.into_iter().filter(|(applies, _)| *applies).map(|(_, label)| label)
    }
}

fn anchor(comment: &Comment) -> String {
    format!("comment-{}", comment.id)
}

/// Renders a full page around the section.
pub(crate) fn document(section: &Section<'_>, body: &Markup) -> Markup {
    let Neighbours { prev, next } = &section.neighbours;
    let title = section.title();
    html! {
        (DOCTYPE)
        html lang=(section.language.tag()) dir=(section.language.direction()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                @if let Some(canonical) = &section.canonical { link rel="canonical" href=(canonical); }
                @if let Some(prev) = prev { link rel="prev" href=(prev); }
                @if let Some(next) = next { link rel="next" href=(next); }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 dir="auto" {
                        @if let Some(url) = &section.url { a href=(url) { (title) } } @else { (title) }
                    }
                    (body)
                }
            }
        }
        "\n"
    }
}
