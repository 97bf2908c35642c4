//! The routes of the API: names, methods, paths and functions. The events in `template.yaml` and the router in `Cargo.toml` are
//! generated from this table.

use http::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The `operationId` in `openapi.yaml`.
    pub name: &'static str,
    pub method: &'static str,
    /// The path below the API's prefix, with parameters in braces.
    pub path: &'static str,
    /// The folder in `functions/` of the function that serves the route.
    pub function: &'static str,
    /// Whether the route also serves HEAD.
    pub answers_head: bool,
}

const fn route(name: &'static str, method: &'static str, path: &'static str, function: &'static str) -> Route {
    Route { name, method, path, function, answers_head: false }
}

/// A GET route that is open to everyone and also serves HEAD.
const fn open(name: &'static str, path: &'static str, function: &'static str) -> Route {
    Route { answers_head: true, ..route(name, "GET", path, function) }
}

#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    open( "svc-pro.ui",                                       "ui",                                  "ui"),
    open( "svc-pro.comments.index",                           "{type}/{id}/comments",                "comments"),
    route("svc-pro.comments.store",                 "POST",   "{type}/{id}/comments",                "comments"),
    open( "svc-pro.comments.replies",                         "comments/{id}/replies",               "comments"),
    open( "svc-pro.comments.show",                            "comments/{id}",                       "comments"),
    route("svc-pro.comments.update",                "PATCH",  "comments/{id}",                       "comments"),
    route("svc-pro.comments.destroy",               "DELETE", "comments/{id}",                       "comments"),
    open( "svc-pro.comments.public",                          "public/{type}/{id}/comments",         "public"),
    open( "svc-pro.comments.page",                            "{type}/{id}/comments.html",           "public"),
    route("svc-pro.comments.like",                  "POST",   "comments/{id}/like",                  "reactions"),
    route("svc-pro.comments.report",                "POST",   "comments/{id}/report",                "reactions"),
    route("svc-pro.comments.pin",                   "POST",   "comments/{id}/pin",                   "moderation"),
    route("svc-pro.comments.unpin",                 "DELETE", "comments/{id}/pin",                   "moderation"),
    route("svc-pro.markdown.preview",               "POST",   "markdown/preview",                    "ui"),
    route("svc-pro.users.index",                    "GET",    "users",                               "users"),
    route("svc-pro.me.notifications.show",          "GET",    "me/notifications",                    "users"),
    route("svc-pro.me.notifications.update",        "PUT",    "me/notifications",                    "users"),
    route("svc-pro.me.notifications.destroy",       "DELETE", "me/notifications",                    "users"),
    open( "svc-pro.mail.show",                                "mail/{token}",                        "users"),
    route("svc-pro.mail.act",                       "POST",   "mail/{token}",                        "users"),
    route("svc-pro.sign_in.start",                  "POST",   "sign_in",                             "sign_in"),
    route("svc-pro.sign_in.callback",               "GET",    "sign_in/callback/{provider}",         "sign_in"),
    route("svc-pro.sign_in.finish",                 "POST",   "sign_in/finish",                      "sign_in"),
    route("svc-pro.sign_in.refresh",                "POST",   "sign_in/refresh",                     "sign_in"),
    route("svc-pro.sign_in.end",                    "POST",   "sign_in/end",                         "sign_in"),
    route("svc-pro.sign_in.name",                   "PUT",    "me/name",                             "sign_in"),
    route("svc-pro.media.store",                    "POST",   "media",                               "media"),
    route("svc-pro.media.destroy",                  "DELETE", "media/{name}",                        "media"),
    route("svc-pro.moderation.comments",            "GET",    "moderation/comments",                 "moderation"),
    route("svc-pro.moderation.bulk",                "POST",   "moderation/comments",                 "moderation"),
    route("svc-pro.moderation.users",               "GET",    "moderation/users",                    "moderation"),
    route("svc-pro.moderation.users.comments",      "GET",    "users/{id}/comments",                 "moderation"),
    route("svc-pro.moderation.log",                 "GET",    "moderation/log",                      "moderation"),
    route("svc-pro.moderation.approve",             "POST",   "comments/{id}/approve",               "moderation"),
    route("svc-pro.moderation.reject",              "POST",   "comments/{id}/reject",                "moderation"),
    route("svc-pro.moderation.reports",             "GET",    "comments/{id}/reports",               "moderation"),
    route("svc-pro.moderation.reports.dismiss",     "POST",   "comments/{id}/reports/dismiss",       "moderation"),
    route("svc-pro.moderation.ban",                 "PUT",    "users/{id}/ban",                      "moderation"),
    route("svc-pro.moderation.unban",               "DELETE", "users/{id}/ban",                      "moderation"),
    route("svc-pro.moderation.comments.ban",        "PUT",    "comments/{id}/ban",                   "moderation"),
    route("svc-pro.moderation.networks.unban",      "DELETE", "moderation/networks/{network}/ban",   "moderation"),
    route("svc-pro.moderation.close",               "POST",   "{type}/{id}/close",                   "moderation"),
    route("svc-pro.moderation.open",                "POST",   "{type}/{id}/open",                    "moderation"),
    route("svc-pro.moderation.record",              "PUT",    "{type}/{id}",                         "moderation"),
    route("svc-pro.moderation.webhooks.index",      "GET",    "moderation/webhooks",                 "moderation"),
    route("svc-pro.moderation.webhooks.store",      "POST",   "moderation/webhooks",                 "moderation"),
    route("svc-pro.moderation.webhooks.update",     "PATCH",  "moderation/webhooks/{id}",            "moderation"),
    route("svc-pro.moderation.webhooks.destroy",    "DELETE", "moderation/webhooks/{id}",            "moderation"),
    route("svc-pro.moderation.webhooks.test",       "POST",   "moderation/webhooks/{id}/test",       "moderation"),
    route("svc-pro.moderation.webhooks.deliveries", "GET",    "moderation/webhooks/{id}/deliveries", "moderation"),
    route("svc-pro.moderation.webhooks.redeliver",  "POST",   "moderation/webhooks/{id}/deliveries/{message}/redeliver", "moderation"),
    open( "svc-pro.counts",                                   "counts",                              "ui"),
    open( "svc-pro.changes",                                  "{type}/{id}/changes",                 "ui"),
    open( "svc-pro.feed",                                     "{type}/{id}/feed.atom",               "ui"),
    open( "svc-pro.embed",                                    "embed.js",                            "ui"),
    open( "svc-pro.embed.part",                               "embed/{file}",                        "ui"),
    open( "svc-pro.moderation.script",                        "moderation.js",                       "ui"),
    open( "svc-pro.moderation.page",                          "moderate",                            "ui"),
    open( "svc-pro.openapi",                                  "openapi.json",                        "ui"),
    open( "svc-pro.docs",                                     "docs",                                "ui"),
];

impl Route {
    pub fn methods(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.method).chain(self.answers_head.then_some("HEAD"))
    }

    fn fits(&self, segments: &[&str]) -> bool {
        let pattern: Vec<&str> = self.path.split('/').collect();
        let fits = |(pattern, segment): (&&str, &&str)| {
            if pattern.starts_with('{') { !segment.is_empty() } else { pattern == segment }
        };
        // `comments/7` is a comment, never a record of the type `comments`.
        let reserved = self.path == "{type}/{id}" && segments.first().is_some_and(|first| is_reserved(first));
        !reserved && pattern.len() == segments.len() && pattern.iter().zip(segments).all(fits)
    }
}

/// The route with the fewest parameters among those that fit: `users/{id}/comments` before `{type}/{id}/comments`.
pub fn find(method: &Method, segments: &[&str]) -> Option<&'static Route> {
    let answers = |route: &&Route| route.methods().any(|answered| answered == method.as_str());
    let fitting = ROUTES.iter().filter(answers).filter(|route| route.fits(segments));
    fitting.min_by_key(|route| route.path.matches('{').count())
}

/// Names that no type of records may have: the first segments of routes, except parameters.
pub(crate) fn reserved_types() -> impl Iterator<Item = &'static str> {
    let first = ROUTES.iter().filter_map(|route| route.path.split('/').next());
    first.filter(|segment| !segment.starts_with('{'))
}

pub(crate) fn is_reserved(name: &str) -> bool {
    reserved_types().any(|reserved| reserved == name)
}

/// The methods of the routes at this path, each once; empty if there is no route.
pub fn methods(segments: &[&str]) -> Vec<Method> {
    let fitting = ROUTES.iter().filter(|route| route.fits(segments));
    let methods = fitting.flat_map(Route::methods).filter_map(|method| Method::from_bytes(method.as_bytes()).ok());
    methods.fold(Vec::new(), |mut methods, method| {
        if !methods.contains(&method) {
            methods.push(method);
        }
        methods
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_route_for_each_method() {
        let name = |method: Method, path: &str| find(&method, &path.split('/').collect::<Vec<_>>()).map(|r| r.name);
        assert_eq!(name(Method::GET, "posts/1/comments"), Some("svc-pro.comments.index"));
        assert_eq!(name(Method::GET, "users/7/comments"), Some("svc-pro.moderation.users.comments"));
        assert_eq!(name(Method::POST, "users/7/comments"), Some("svc-pro.comments.store"));
        assert_eq!(name(Method::PATCH, "comments/7"), Some("svc-pro.comments.update"));
        assert_eq!(name(Method::PUT, "posts/7"), Some("svc-pro.moderation.record"));
        assert_eq!(name(Method::HEAD, "comments/7"), Some("svc-pro.comments.show"));
        assert_eq!(name(Method::HEAD, "moderation/comments"), None);
        for reserved in reserved_types() {
            assert_eq!(name(Method::PUT, &format!("{reserved}/7")), None);
        }
        assert_eq!(name(Method::GET, "posts//comments"), None);
        assert_eq!(name(Method::GET, "ui/"), None);
    }

    #[test]
    fn the_methods_of_a_path_are_known() {
        assert_eq!(methods(&["comments", "7", "pin"]), [Method::POST, Method::DELETE]);
        assert_eq!(methods(&["users", "7", "comments"]), [Method::GET, Method::HEAD, Method::POST]);
        assert_eq!(methods(&["users"]), [Method::GET]);
        assert!(methods(&["nothing"]).is_empty());
    }
}
