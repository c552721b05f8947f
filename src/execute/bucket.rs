//! Makes the buckets of changes, before any of their steps.
//!
//! A bucket that is missing is recorded as begun before the service is asked to make it, and as made once it is protected.
//! So a run that is killed in between is continued, and a bucket that was there before is never changed.

use super::fleet::FleetRun;
use super::{StepFault, cancellation_point};
use crate::catalog::BucketRecord;
use crate::plan::{BucketOrder, Change};
use crate::secret;
use crate::target::{BucketClient, BucketLook, BucketOutcome};

impl<'a> FleetRun<'a, '_> {
    pub(super) async fn make_buckets(&mut self) {
        let plan = self.plan;
        let ordered = plan.changes.iter().filter(|change| change.is_ready());
        for (change, order) in ordered.filter_map(|change| Some((change, change.bucket.as_ref()?))) {
            if self.broken.contains(&change.resource) {
                continue;
            }
            if let Err(fault) = self.make_bucket(change, order).await {
                self.fail(change, None, StepFault { alone: true, ..fault });
            }
            cancellation_point().await;
        }
    }

    async fn make_bucket(&self, change: &'a Change, order: &BucketOrder) -> Result<(), StepFault> {
        let BucketOrder { place, credentials, begun } = order;
        let keys = secret::value_of(credentials, &change.resource.organization, self.run.secrets)?;
        let client = BucketClient::new(place, keys, self.run.targets.allowed())?;
        let look = client.look().await?;
        cancellation_point().await;
        let record_begun =
            || self.record_bucket(change, Some(&BucketRecord { place: place.clone(), made: false }));
        if look != BucketLook::Taken {
            self.run.audit([format!("making bucket {} for {}", place.name, change.resource)])?;
        }
        // Where keys may not look, the bucket may have been there before.
        if look == BucketLook::Missing {
            record_begun()?;
            cancellation_point().await;
        }
        let outcome = match client.create(look).await {
            Ok(outcome) => outcome,
            Err(error) => {
                if !begun && !error.is_open() {
                    // The service said that it made nothing.
                    self.record_bucket(change, None)?;
                }
                return Err(error.into());
            }
        };
        if outcome == BucketOutcome::Made && look != BucketLook::Missing {
            record_begun()?;
        }
        cancellation_point().await;
        let is_ours = outcome == BucketOutcome::Made || *begun;
        let unknown = if is_ours { client.protect().await? } else { Vec::new() };
        cancellation_point().await;
        let (cluster, bucket, account) = (&change.resource, &place.name, &place.account);
        let what = match is_ours {
            true => format!("made bucket {bucket} for {cluster}"),
            false => format!(
                "found bucket {bucket} for {cluster}: {account} had it before, so it isn't made, and is used as it is"
            ),
        };
        tracing::info!(%cluster, %bucket, "{what}");
        for name in unknown {
            tracing::warn!(%cluster, %bucket, "the service of bucket {bucket} has no setting for {name}");
        }
        self.run.audit([what])?;
        self.record_bucket(change, Some(&BucketRecord { place: place.clone(), made: true }))
    }

    /// Records a bucket with its cluster, whose creation is recorded by now.
    fn record_bucket(&self, change: &Change, bucket: Option<&BucketRecord>) -> Result<(), StepFault> {
        Ok(self.run.state.set_bucket(&change.resource, bucket)?)
    }
}
