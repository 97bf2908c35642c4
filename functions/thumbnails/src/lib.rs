//! Makes the thumbnail of every uploaded image when the bucket sends an event. Safe to repeat and to run out of order,
//! because an upload never changes and its thumbnail depends on nothing else. If an image is removed at any time, its
//! thumbnail is removed too.

use aws_lambda_events::event::s3::{S3Event, S3EventRecord};
use aws_sdk_s3::Client;
use media::bucket::{self, Bucket, Name};
use media::worker::Worker;
use shared::error::Fault;

pub struct Thumbnails {
    objects: Client,
    worker: Worker,
}

impl Thumbnails {
    #[must_use]
    pub fn new(objects: Client) -> Self {
        Self { objects, worker: Worker::default() }
    }

    /// Tries every record, then returns the first failure. Lambda retries and finally moves the event to a dead-letter
    /// queue. An upload that cannot be decoded is a failure too, because we encoded it.
    pub async fn handle(&self, event: S3Event) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for record in event.records {
            outcome = outcome.and(self.make(record).await);
        }
        outcome
    }

    /// Stores the thumbnail if the image exists, and deletes it if the image is gone.
    async fn make(&self, record: S3EventRecord) -> Result<(), Fault> {
        let (bucket, key) = bucket::announced(record);
        let Some(name) = Name::of_upload(&key) else {
            tracing::info!(key, "not an upload");
            return Ok(());
        };
        let bucket = Bucket::new(&self.objects, &bucket);
        let thumbnail = name.thumbnail();
        // Repeats if the image was removed or stored again during the work.
        loop {
            let upload = bucket.get(&key).await?;
            let exists = upload.is_some();
            match upload {
                Some(upload) => {
                    let made = self.worker.run(move || imaging::thumbnail(&upload)).await?;
                    let made = made.map_err(|why| Fault::new("making a thumbnail", format!("{key}: {why:?}")))?;
                    tracing::info!(thumbnail, bytes = made.bytes.len(), "thumbnail made");
                    bucket.put(&thumbnail, made).await?;
                }
                None => {
                    tracing::info!(key, "object is gone");
                    bucket.delete(&thumbnail).await?;
                }
            }
            if bucket.has(&key).await? == exists {
                return Ok(());
            }
        }
    }
}
