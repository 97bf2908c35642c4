//! The site that comments come from. Ids are unique within a site.

use shared::domain::ids::sha256_hex;

use super::record::Record;
use super::source::ReadError;

/// Maximum bytes of a name. A hash replaces a longer one.
const MAX_SITE: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) name: Option<String>,
    /// The file that named the site; `None` if no file did.
    named_by: Option<String>,
    /// The last file that named a site. If one file has several names, the first wins.
    last: Option<String>,
}

impl Site {
    pub(super) fn given(name: Option<&str>) -> Self {
        Self { name: name.and_then(plain), ..Self::default() }
    }

    /// Records the site that a record names, unless the user named one. Fails if another file named a different one.
    pub(super) fn note(&mut self, file: &str, record: &Record) -> Result<(), ReadError> {
        let Record::Head(head) = record else { return Ok(()) };
        let is_given = self.name.is_some() && self.named_by.is_none();
        let Some(named) = head.site.as_deref().and_then(plain).filter(|_| !is_given) else { return Ok(()) };
        if self.last.as_deref() == Some(file) {
            return Ok(());
        }
        self.last = Some(file.to_owned());
        match (&self.name, &self.named_by) {
            (Some(name), Some(other)) if *name != named => Err(ReadError::whole(format_args!(
                "is from the site {named}, but {other} is from {name}; import each site separately, or name the site with --site"
            ))),
            (Some(_), _) => Ok(()),
            (None, _) => {
                (self.name, self.named_by) = (Some(named), Some(file.to_owned()));
                Ok(())
            }
        }
    }
}

/// Normalizes a name: without a scheme, in lower case. `None` if nothing is left.
fn plain(name: &str) -> Option<String> {
    let name = name.trim().to_lowercase();
    let name = ["https://", "http://"].iter().find_map(|scheme| name.strip_prefix(scheme)).unwrap_or(&name);
    let name = name.trim_end_matches('/');
    let name = if name.len() <= MAX_SITE { name.to_owned() } else { sha256_hex(name) };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(given: Option<&str>, files: &[(&str, &str)]) -> Result<Option<String>, String> {
        let mut site = Site::given(given);
        for (file, name) in files {
            site.note(file, &Record::of_site((*name).to_owned())).map_err(|error| error.to_string())?;
        }
        Ok(site.name)
    }

    #[test]
    fn the_site_is_named_by_the_user_or_else_by_the_files() {
        let files = [("a.xml", "https://Blog.example/"), ("a.xml", "another"), ("b.xml", "http://blog.example")];
        assert_eq!(named(None, &files).unwrap().as_deref(), Some("blog.example"));
        assert_eq!(named(Some("mine"), &files).unwrap().as_deref(), Some("mine"));
        assert_eq!(named(None, &[]).unwrap(), None);
        assert_eq!(named(None, &[("a.xml", " ")]).unwrap(), None);
    }

    #[test]
    fn files_of_two_sites_are_reported_with_both_names() {
        let error = named(None, &[("a.xml", "one.example"), ("b.xml", "two.example")]).unwrap_err();
        assert!(error.starts_with("is from the site two.example, but a.xml is from one.example; "), "{error}");
        assert!(error.contains("--site"), "{error}");
    }
}
