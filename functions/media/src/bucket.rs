//! The bucket of images: its keys and objects. `template.yaml` defines who may access it.

use aws_lambda_events::event::s3::S3EventRecord;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::DisplayErrorContext;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_types::SdkConfig;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imaging::{Format, MAX_OUTPUT_BYTES, Picture};
use percent_encoding::percent_decode_str;
use shared::domain::ids::{Random, keyed_hash};
use shared::domain::secret::Secret;
use shared::error::Fault;
use shared::store::idempotency::IdempotencyRequest;

const UPLOADS: &str = "uploads/";
const THUMBNAILS: &str = "thumbnails/";
/// An object never changes, but moderators may remove it, so caches may keep it only for a day.
const CACHE_CONTROL: &str = "public, max-age=86400";

/// For a custom endpoint, requests have the bucket in the path, because such endpoints lack DNS names and certificates
/// for buckets.
#[must_use]
pub fn client(sdk: &SdkConfig) -> Client {
    let path_style = shared::aws::config::endpoint(sdk, "S3").is_some();
    Client::from_conf(aws_sdk_s3::config::Builder::from(sdk).force_path_style(path_style).build())
}

/// Returns the bucket's name and the object's key from an event record. S3 form-encodes keys in its events: a space is
/// a `+`.
#[must_use]
pub fn announced(record: S3EventRecord) -> (String, String) {
    let (bucket, key) = (record.s3.bucket.name.unwrap_or_default(), record.s3.object.key.unwrap_or_default());
    (bucket, percent_decode_str(&key.replace('+', " ")).decode_utf8_lossy().into_owned())
}

/// Maximum bytes of a name. Our names are shorter.
const MAX_NAME: usize = 64;

/// The name that an upload and its thumbnail share: a part that can't be guessed or chosen, and the image's dimensions.
/// Names from earlier versions have no dimensions.
#[derive(Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    #[must_use]
    pub fn new(random: &Random, picture: &Picture) -> Self {
        Self::sized(&URL_SAFE_NO_PAD.encode(random.bytes::<18>()), picture)
    }

    /// Derives the name from the request's visitor and the hashes of its key and content, so that a repeated request
    /// gets the same name. The name can't be guessed without the salt.
    #[must_use]
    pub fn again(salt: &Secret, request: &IdempotencyRequest, picture: &Picture) -> Self {
        let hash = keyed_hash(salt, &["upload", &request.visitor.0, &request.key, &request.request]);
        Self::sized(&hash, picture)
    }

    /// Appends the dimensions, which pages read to reserve space before the image loads.
    fn sized(secret: &str, picture: &Picture) -> Self {
        Self(format!("{secret}-{}x{}", picture.width, picture.height))
    }

    /// Returns `None` if no upload can have this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let fits = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain);
        fits.then(|| Self(name.to_owned()))
    }

    /// Returns the name in an upload's key, or `None` for keys of other objects.
    #[must_use]
    pub fn of_upload(key: &str) -> Option<Self> {
        Self::of_file(key.strip_prefix(UPLOADS)?).map(|(name, _)| name)
    }

    /// Returns the name and format in an upload's file name, which is the last segment of its address.
    #[must_use]
    pub fn of_file(file: &str) -> Option<(Self, Format)> {
        let (name, extension) = file.split_once('.')?;
        let format = Format::ALL.into_iter().find(|format| format.extension() == extension)?;
        Some((Self::parse(name)?, format))
    }

    /// Returns the names of all images that a text links to, on any host.
    #[must_use]
    pub fn all_in(text: &str) -> Vec<Self> {
        let after =
            |folder| text.split(folder).skip(1).map(|rest| rest.split(|c| !is_plain(c)).next().unwrap_or_default());
        after(UPLOADS).chain(after(THUMBNAILS)).filter_map(Self::parse).collect()
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the possible keys of an upload with this name, then the key of its thumbnail, in the order of removal
    /// (see [`Bucket::remove`]).
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let uploads = Format::ALL.into_iter().map(|format| self.upload(format));
        uploads.chain([self.thumbnail()]).collect()
    }

    #[must_use]
    pub fn upload(&self, format: Format) -> String {
        format!("{UPLOADS}{}.{}", self.0, format.extension())
    }

    /// Returns the thumbnail's key. It has no extension, because the format is not known before the thumbnail is made.
    #[must_use]
    pub fn thumbnail(&self) -> String {
        format!("{THUMBNAILS}{}", self.0)
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

#[derive(Clone, Copy)]
pub struct Bucket<'a> {
    client: &'a Client,
    name: &'a str,
}

impl<'a> Bucket<'a> {
    #[must_use]
    pub fn new(client: &'a Client, name: &'a str) -> Self {
        Self { client, name }
    }

    pub async fn put(self, key: &str, picture: Picture) -> Result<(), Fault> {
        let request = self.client.put_object().bucket(self.name).key(key);
        let request = request
            .content_type(picture.content_type())
            .cache_control(CACHE_CONTROL)
            // Gives saved thumbnails an extension, which their keys lack.
            .content_disposition(format!("inline; filename=\"image.{}\"", picture.extension()))
            .body(ByteStream::from(picture.bytes));
        request.send().await.map_err(|error| Fault::new("storing an image", DisplayErrorContext(error).to_string()))?;
        Ok(())
    }

    pub async fn has(self, key: &str) -> Result<bool, Fault> {
        match self.client.head_object().bucket(self.name).key(key).send().await {
            Ok(_) => Ok(true),
            // S3 sends no error code, because a response to HEAD has no body.
            Err(error) if error.raw_response().is_some_and(|answer| answer.status().as_u16() == 404) => Ok(false),
            Err(error) => Err(Fault::new("finding an image", DisplayErrorContext(error).to_string())),
        }
    }

    /// Succeeds even if the object doesn't exist.
    pub async fn delete(self, key: &str) -> Result<(), Fault> {
        let request = self.client.delete_object().bucket(self.name).key(key);
        request
            .send()
            .await
            .map_err(|error| Fault::new("removing an image", DisplayErrorContext(error).to_string()))?;
        Ok(())
    }

    /// Removes an image, and then its thumbnail. After storing a thumbnail, the function `thumbnails` checks that the
    /// image still exists, so a thumbnail made during the removal is removed by one of the two functions.
    pub async fn remove(self, name: &Name, format: Format) -> Result<(), Fault> {
        self.delete(&name.upload(format)).await?;
        self.delete(&name.thumbnail()).await
    }

    /// Returns `None` when the object is gone. Fails for objects larger than any that [`Self::put`] stored.
    pub async fn get(self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        const DOING: &str = "read an image";
        let object = match self.client.get_object().bucket(self.name).key(key).send().await {
            Ok(object) => object,
            Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => return Ok(None),
            Err(error) => return Err(Fault::new(DOING, DisplayErrorContext(error).to_string())),
        };
        let size = object.content_length.and_then(|size| usize::try_from(size).ok());
        if size.is_none_or(|size| size > MAX_OUTPUT_BYTES) {
            return Err(Fault::new(
                DOING,
                format!("{key} has no size or more than {MAX_OUTPUT_BYTES} bytes: {size:?}"),
            ));
        }
        let bytes = object.body.collect().await.map_err(|error| Fault::new(DOING, error))?;
        Ok(Some(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        let picture = Picture { bytes: Vec::new(), format: Format::Jpeg, width: 65_535, height: 300 };
        Name::new(&Random::system(), &picture)
    }

    #[test]
    fn a_key_in_an_event_is_form_encoded() {
        let mut record = S3EventRecord::default();
        record.s3.bucket.name = Some("media".to_owned());
        record.s3.object.key = Some("uploads/a+b%2Bc%C3%A9.png".to_owned());
        assert_eq!(announced(record), ("media".to_owned(), "uploads/a b+cé.png".to_owned()));
    }

    #[test]
    fn image_names_have_24_url_safe_characters_and_are_unique() {
        let (one, other) = (name(), name());
        assert_ne!(one, other);
        let key = one.upload(Format::Jpeg);
        assert_eq!(key.len(), "uploads/".len() + 24 + "-65535x300.jpg".len());
        assert!(key.ends_with("-65535x300.jpg"), "{key}");
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b)), "{key}");
    }

    #[test]
    fn images_linked_in_a_text_are_found_at_any_address() {
        let text = "![a](https://a.test/media/uploads/Ab-9_x-640x480.png) and <http://b.test/thumbnails/Cd> or uploads/, uploads/!";
        let names = Name::all_in(text);
        assert_eq!(names.iter().map(Name::as_str).collect::<Vec<_>>(), ["Ab-9_x-640x480", "Cd"]);
        assert!(names[0].keys().contains(&"uploads/Ab-9_x-640x480.png".to_owned()));
        assert!(names[0].keys().contains(&names[0].thumbnail()));
    }

    #[test]
    fn a_thumbnail_has_the_name_of_its_upload_and_is_not_an_upload() {
        let name = name();
        assert_eq!(Name::of_upload("uploads/of-an-earlier-version.png").unwrap().as_str(), "of-an-earlier-version");
        assert_eq!(Name::of_upload(&name.upload(Format::Png)).unwrap().thumbnail(), name.thumbnail());
        let plain = &name.0;
        let others = ["", "uploads/", "uploads/.png", "uploads/a/b.png", "uploads/../a.png"].map(str::to_owned);
        let others = others.into_iter().chain([
            name.thumbnail(),
            format!("{plain}.png"),
            format!("uploads/{plain}"),
            format!("uploads/{plain}.txt"),
            format!("uploads/{plain}.png.png"),
            format!("uploads/{}.png", "a".repeat(65)),
        ]);
        for key in others {
            assert_eq!(Name::of_upload(&key), None, "{key}");
        }
    }
}
