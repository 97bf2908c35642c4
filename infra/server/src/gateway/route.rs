//! The routes of an HTTP API, and API Gateway's rules for selecting one.

use http::Method;
use percent_encoding::percent_decode_str;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The event's `routeKey`: `GET /posts/{id}`, or `$default`.
    pub key: String,
    pub function: String,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Default,
    /// A method of `None` matches any method.
    Path {
        method: Option<Method>,
        segments: Vec<Segment>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Parameter(String),
    /// `{name+}`: the rest of the path.
    Greedy(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Match<'a> {
    pub route: &'a Route,
    /// Names with their decoded values.
    pub parameters: Vec<(&'a str, String)>,
}

impl Route {
    /// A route for a method, which may be `ANY`. `None` if it isn't an HTTP method.
    #[must_use]
    pub fn new(method: &str, path: &str, function: &str) -> Option<Self> {
        let method = method.to_ascii_uppercase();
        let pattern = Pattern::Path {
            method: if method == "ANY" { None } else { Some(method.parse().ok()?) },
            segments: path.trim_start_matches('/').split('/').map(Segment::parse).collect(),
        };
        Some(Self { key: format!("{method} {path}"), function: function.to_owned(), pattern })
    }

    /// The default route, for requests that match no other.
    #[must_use]
    pub fn fallback(function: &str) -> Self {
        Self { key: "$default".to_owned(), function: function.to_owned(), pattern: Pattern::Default }
    }

    /// The path's template; `None` for the default route.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.key.split_once(' ').map(|(_, path)| path)
    }

    fn parameters(&self, method: &Method, path: &[&str]) -> Option<Vec<(&str, String)>> {
        let Pattern::Path { method: wanted, segments } = &self.pattern else {
            return Some(Vec::new());
        };
        if wanted.as_ref().is_some_and(|wanted| wanted != method) {
            return None;
        }
        let mut parameters = Vec::new();
        let mut rest = path;
        for segment in segments {
            let (value, after) = rest.split_first()?;
            match segment {
                Segment::Literal(literal) if decode(value) == *literal => {}
                Segment::Parameter(name) if !value.is_empty() => parameters.push((name.as_str(), decode(value))),
                Segment::Greedy(name) if !rest.join("/").is_empty() => {
                    parameters.push((name.as_str(), decode(&rest.join("/"))));
                    return Some(parameters);
                }
                _ => return None,
            }
            rest = after;
        }
        rest.is_empty().then_some(parameters)
    }

    /// The index of the parameter `token` in a path of this route or below it.
    fn token(&self, path: &[&str]) -> Option<usize> {
        let Pattern::Path { segments, .. } = &self.pattern else { return None };
        let place = segments.iter().position(|segment| *segment == Segment::Parameter("token".to_owned()))?;
        let before = path.get(..place).filter(|_| path.len() > place)?;
        let mut pairs = segments.iter().zip(before);
        pairs
            .all(|(segment, value)| !matches!(segment, Segment::Literal(text) if decode(value) != *text))
            .then_some(place)
    }

    /// The sort key of routes: those that match the whole path come first, then those with a greedy parameter, and then
    /// the default route.
    fn precedence(&self) -> (u8, Vec<u8>, bool) {
        match &self.pattern {
            Pattern::Default => (2, Vec::new(), true),
            Pattern::Path { method, segments } => {
                let is_greedy = matches!(segments.last(), Some(Segment::Greedy(_)));
                (u8::from(is_greedy), segments.iter().map(Segment::rank).collect(), method.is_none())
            }
        }
    }
}

impl Segment {
    fn parse(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            None => Self::Literal(text.to_owned()),
            Some(name) => match name.strip_suffix('+') {
                None => Self::Parameter(name.to_owned()),
                Some(name) => Self::Greedy(name.to_owned()),
            },
        }
    }

    /// A more specific segment has a lower rank.
    fn rank(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Parameter(_) => 1,
            Self::Greedy(_) => 2,
        }
    }
}

/// The most specific route for a path, which is still percent-encoded.
#[must_use]
pub fn find<'a>(routes: &'a [Route], method: &Method, path: &str) -> Option<Match<'a>> {
    let path: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let matches = routes.iter().filter_map(|route| {
        let parameters = route.parameters(method, &path)?;
        Some(Match { route, parameters })
    });
    matches.min_by_key(|found| found.route.precedence())
}

/// The path for logs. Replaces a token in the path, and removes anything after it.
#[must_use]
pub fn without_token(routes: &[Route], path: &str) -> String {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match routes.iter().find_map(|route| route.token(&segments)) {
        Some(place) => format!("/{}/{{token}}", segments[..place].join("/")),
        None => path.to_owned(),
    }
}

pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Vec<Route> {
        vec![
            Route::fallback("fallback"),
            Route::new("GET", "/v1/{type}/{id}/comments", "list").unwrap(),
            Route::new("ANY", "/v1/{type}/{id}/{rest}", "any").unwrap(),
            Route::new("GET", "/v1/comments/{id}/{rest}", "by_id").unwrap(),
            Route::new("get", "/v1/ui", "ui").unwrap(),
            Route::new("GET", "/docs/{page+}", "docs").unwrap(),
            Route::new("ANY", "/v1/pages/{rest+}", "pages").unwrap(),
        ]
    }

    fn found(method: &Method, path: &str) -> (String, Vec<String>) {
        let routes = routes();
        let found = find(&routes, method, path).unwrap();
        (found.route.function.clone(), found.parameters.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn the_most_specific_route_wins() {
        assert_eq!(found(&Method::GET, "/v1/posts/7/comments").0, "list");
        assert_eq!(found(&Method::GET, "/v1/comments/7/comments").0, "by_id");
        assert_eq!(found(&Method::POST, "/v1/posts/7/comments").0, "any");
        assert_eq!(found(&Method::GET, "/v1/ui").0, "ui");
        assert_eq!(found(&Method::GET, "/v1/pages/7/comments").0, "list");
        assert_eq!(found(&Method::GET, "/v1/pages/7").0, "pages");
    }

    #[test]
    fn other_methods_and_unknown_paths_go_to_the_default_route() {
        assert_eq!(found(&Method::PUT, "/v1/ui").0, "fallback");
        assert_eq!(found(&Method::HEAD, "/v1/ui").0, "fallback");
        assert_eq!(found(&Method::GET, "/").0, "fallback");
        assert_eq!(found(&Method::GET, "/v1/ui/").0, "fallback");
        assert_eq!(found(&Method::GET, "/v1/posts//comments").0, "fallback");
    }

    #[test]
    fn parameters_are_decoded_after_the_path_was_split() {
        assert_eq!(found(&Method::GET, "/v1/p%20o/a%2Fb/comments").1, ["p o", "a/b"]);
        assert_eq!(found(&Method::GET, "/docs/a/b%20c"), ("docs".to_owned(), vec!["a/b c".to_owned()]));
    }

    #[test]
    fn tokens_in_paths_are_left_out_of_logs() {
        let routes = [Route::fallback("any"), Route::new("GET", "/v1/mail/{token}", "mail").unwrap()];
        for path in ["/v1/mail/secret", "/v1/mail/secret/", "/v1/m%61il/secret/x", "//v1/mail/secret"] {
            let logged = without_token(&routes, path);
            assert!(logged.ends_with("/{token}") && !logged.contains("secret"), "{logged}");
        }
        for path in ["/", "/v1/mail", "/v1/posts/7", "//v1/posts"] {
            assert_eq!(without_token(&routes, path), path);
        }
    }

    #[test]
    fn without_a_default_route_nothing_may_match() {
        assert_eq!(find(&routes()[1..], &Method::GET, "/nowhere"), None);
    }
}
