//! Makes the thumbnail of every uploaded image when the bucket announces it. Safe to repeat and to run out of order,
//! because an upload never changes and its thumbnail depends on nothing else.

use aws_lambda_events::event::s3::{S3Event, S3EventRecord};
use aws_sdk_s3::Client;
use imaging::thumbnail;
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

    /// Tries every record, then returns the first failure. Lambda retries and finally moves the event to a dead-letter queue.
    /// An upload that cannot be decoded is a failure too, because we encoded it.
    pub async fn handle(&self, event: S3Event) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for record in event.records {
            outcome = outcome.and(self.make(record).await);
        }
        outcome
    }

    async fn make(&self, record: S3EventRecord) -> Result<(), Fault> {
        let (bucket, key) = bucket::announced(record);
        let Some(name) = Name::of_upload(&key) else {
            tracing::info!(key, "not an upload");
            return Ok(());
        };
        let bucket = Bucket::new(&self.objects, &bucket);
        let Some(upload) = bucket.get(&key).await? else {
            tracing::info!(key, "object is gone");
            return Ok(());
        };
        let made = self.worker.run(move || thumbnail(&upload)).await?;
        let made = made.map_err(|refused| Fault::new("make a thumbnail", format!("{key}: {refused:?}")))?;
        let thumbnail = name.thumbnail();
        tracing::info!(thumbnail, bytes = made.bytes.len(), "thumbnail made");
        bucket.put(&thumbnail, made).await
    }
}
