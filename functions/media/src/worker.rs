//! Processes images one at a time, so that memory stays bounded, and on a separate thread, so that other requests don't
//! wait.

use std::sync::Arc;

use shared::error::Fault;
use tokio::sync::Semaphore;

pub struct Worker(Arc<Semaphore>);

impl Default for Worker {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Worker {
    /// Runs `work` when its turn comes. Work that has begun finishes even if its caller is dropped, and later work
    /// waits for it.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
        let failed = |error| Fault::new("processing an image", error);
        let turn = Arc::clone(&self.0).acquire_owned().await.map_err(|error| failed(error.to_string()))?;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        work.await.map_err(|panic| failed(panic.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn only_one_image_is_processed_at_a_time_even_if_callers_give_up() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static PEAK: AtomicUsize = AtomicUsize::new(0);
        let worker = Worker::default();
        let work = || {
            PEAK.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            NOW.fetch_sub(1, Ordering::SeqCst);
        };
        let gone = tokio::time::timeout(Duration::from_millis(5), worker.run(work)).await;
        assert!(gone.is_err());
        let (first, second) = tokio::join!(worker.run(work), worker.run(work));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(PEAK.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_the_next_image_is_processed() {
        let worker = Worker::default();
        assert!(worker.run(|| panic!("bad pixel")).await.is_err());
        assert_eq!(worker.run(|| 7).await.unwrap(), 7);
    }
}
