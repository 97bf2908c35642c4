//! Stops sign-in codes to addresses that bounced or refused a code, and to those whose owner complained.

use crate::app::App;
use crate::domain::sign_in::account_of;
use crate::domain::sign_in::bounds::MAX_FAILURES;
use crate::domain::sign_in::keys::FlowKeys;
use crate::error::Fault;
use crate::store::sign_in::FAILED_CODES;

impl App {
    /// Stops codes to an address for 30 days. If `failed`, also counts the address toward the hour's failures. Safe to repeat.
    pub async fn stop_codes(&self, email: &str, failed: bool) -> Result<(), Fault> {
        if self.config.sign_in.is_none() {
            return Ok(());
        }
        let (keys, now) = (FlowKeys::new(&self.config.visitor_salt), self.clock.now());
        if !self.store.stop_codes(&keys.address(email), now).await? {
            return Ok(());
        }
        tracing::warn!(failed, "codes to an address are stopped for 30 days, after a refusal, bounce or complaint");
        if failed {
            self.store.count_towards(FAILED_CODES, now).await?;
        }
        Ok(())
    }

    /// Whether a code may be sent to this address. If too many codes have failed in this hour, only addresses of existing
    /// accounts receive codes.
    pub async fn takes_codes(&self, email: &str) -> Result<bool, Fault> {
        let (keys, now) = (FlowKeys::new(&self.config.visitor_salt), self.clock.now());
        let address = keys.address(email);
        let (is_stopped, failures) = tokio::try_join!(
            self.store.are_codes_stopped(&address, now),
            self.store.counted_towards(FAILED_CODES, now)
        )?;
        if is_stopped || failures < MAX_FAILURES {
            return Ok(!is_stopped);
        }
        let (account, _) = account_of(&self.config.visitor_salt, email);
        Ok(self.store.sessions(account).await?.is_some())
    }
}
