//! The bucket of images: what its keys are and how its objects are stored. Who may read it, the template says.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::DisplayErrorContext;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_types::SdkConfig;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imaging::{Format, MAX_OUTPUT_BYTES, Picture};
use shared::domain::ids::{Random, keyed_hash};
use shared::domain::secret::Secret;
use shared::error::Fault;
use shared::store::idempotency::IdempotencyRequest;

const UPLOADS: &str = "uploads/";
const THUMBNAILS: &str = "thumbnails/";
/// A key names one content, but moderators may remove it.
const CACHE_CONTROL: &str = "public, max-age=86400";

/// A bucket's name in the host wants a DNS and certificates that an endpoint set by hand does not have.
#[must_use]
pub fn client(sdk: &SdkConfig) -> Client {
    let path_style = shared::aws::config::endpoint(sdk, "S3").is_some();
    Client::from_conf(aws_sdk_s3::config::Builder::from(sdk).force_path_style(path_style).build())
}

/// More letters than any name has.
const MAX_NAME: usize = 64;

/// What an upload and its thumbnail have in common: bits neither to be guessed nor chosen.
#[derive(Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    #[must_use]
    pub fn new(random: &Random) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random.bytes::<18>()))
    }

    /// The same for the same request, and not to be guessed without the salt.
    #[must_use]
    pub fn again(salt: &Secret, idempotency: &IdempotencyRequest) -> Self {
        Self(keyed_hash(salt, &["upload", &idempotency.visitor.0, &idempotency.key, &idempotency.request]))
    }

    /// Of an upload's key; none when it is another's.
    #[must_use]
    pub fn of_upload(key: &str) -> Option<Self> {
        Self::of_file(key.strip_prefix(UPLOADS)?).map(|(name, _)| name)
    }

    /// Of an upload's file: the last segment of its address.
    #[must_use]
    pub fn of_file(file: &str) -> Option<(Self, Format)> {
        let (name, extension) = file.split_once('.')?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let known = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain);
        let format = Format::ALL.into_iter().find(|format| format.extension() == extension)?;
        known.then(|| (Self(name.to_owned()), format))
    }

    #[must_use]
    pub fn upload(&self, format: Format) -> String {
        format!("{UPLOADS}{}.{}", self.0, format.extension())
    }

    /// Without an extension: nobody knows its format until it is made.
    #[must_use]
    pub fn thumbnail(&self) -> String {
        format!("{THUMBNAILS}{}", self.0)
    }
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
            // Shown in its own tab under a name with the right ending, whatever its key is.
            .content_disposition(format!("inline; filename=\"image.{}\"", picture.extension()))
            .body(ByteStream::from(picture.bytes));
        request.send().await.map_err(|error| Fault::new("store an image", DisplayErrorContext(error).to_string()))?;
        Ok(())
    }

    /// Done, too, when it is gone already.
    pub async fn delete(self, key: &str) -> Result<(), Fault> {
        let request = self.client.delete_object().bucket(self.name).key(key);
        request.send().await.map_err(|error| Fault::new("remove an image", DisplayErrorContext(error).to_string()))?;
        Ok(())
    }

    /// None when it is gone. Refuses what is larger than anything stored by [`Self::put`].
    pub async fn get(self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        const DOING: &str = "read an image";
        let object = match self.client.get_object().bucket(self.name).key(key).send().await {
            Ok(object) => object,
            Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => return Ok(None),
            Err(error) => return Err(Fault::new(DOING, DisplayErrorContext(error).to_string())),
        };
        let size = object.content_length.and_then(|size| usize::try_from(size).ok());
        if size.is_none_or(|size| size > MAX_OUTPUT_BYTES) {
            return Err(Fault::new(DOING, format!("{key} is of {size:?} bytes")));
        }
        let bytes = object.body.collect().await.map_err(|error| Fault::new(DOING, error))?;
        Ok(Some(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_24_letters_safe_in_an_address_and_no_two_are_alike() {
        let (one, other) = (Name::new(&Random::system()), Name::new(&Random::system()));
        assert_ne!(one, other);
        let key = one.upload(Format::Jpeg);
        assert_eq!(key.len(), "uploads/".len() + 24 + ".jpg".len());
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b)), "{key}");
    }

    #[test]
    fn a_thumbnail_is_named_after_its_upload_and_is_no_upload_itself() {
        let name = Name::new(&Random::system());
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
