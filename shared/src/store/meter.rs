//! Measures the cost of a request: capacity units, as `DynamoDB` reports them, and round trips to the table.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::batch_write_item::{BatchWriteItemInput, BatchWriteItemOutput};
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemInput, DeleteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsInput, TransactWriteItemsOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use aws_smithy_types::config_bag::{Storable, StoreReplace};

tokio::task_local! {
    static COUNT: Arc<Mutex<Cost>>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub read_units: f64,
    pub write_units: f64,
    pub calls: u32,
    /// Round trips: calls in sequence. A call that begins after a call of the latest trip has ended starts another trip.
    pub trips: u32,
    /// Whether a call of the latest trip has ended.
    ended: bool,
}

/// The trip of a call, numbered from 1.
#[derive(Clone, Copy, Debug)]
struct Trip(u32);

impl Storable for Trip {
    type Storer = StoreReplace<Self>;
}

impl Cost {
    fn begin_call(&mut self) -> Trip {
        if self.calls == 0 || self.ended {
            self.trips += 1;
            self.ended = false;
        }
        self.calls += 1;
        Trip(self.trips)
    }

    fn end_call(&mut self, trip: Trip) {
        self.ended |= trip.0 == self.trips;
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.calls += other.calls;
        self.trips += other.trips;
        self.ended = true;
    }
}

/// Runs `work` and measures its cost, which also counts toward any enclosing measurement.
pub async fn measure<T>(work: impl Future<Output = T>) -> (T, Cost) {
    let part = Arc::new(Mutex::new(Cost::default()));
    let result = COUNT.scope(Arc::clone(&part), work).await;
    let cost = *part.lock().unwrap_or_else(PoisonError::into_inner);
    count(|whole| *whole += cost);
    (result, cost)
}

fn count(change: impl FnOnce(&mut Cost)) {
    // Fails outside of `measure`, where costs aren't measured.
    let _unmeasured = COUNT.try_with(|cost| change(&mut cost.lock().unwrap_or_else(PoisonError::into_inner)));
}

/// Requests the consumed capacity of every call and adds it up.
#[derive(Debug)]
pub(super) struct Meter;

/// Downcasts the input or output of an operation to whichever of these types it has, and runs `$then` on it.
macro_rules! each {
    ($any:ident.$downcast:ident() as [$($type:ty)*], $of:ident => $then:expr) => {
        $(if let Some($of) = $any.$downcast::<$type>() { $then; return Ok(()); })*
    };
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        count(|cost| {
            bag.interceptor_state().store_put(cost.begin_call());
        });
        let any = context.input_mut();
        each!(any.downcast_mut() as [GetItemInput PutItemInput UpdateItemInput DeleteItemInput QueryInput
            BatchGetItemInput BatchWriteItemInput TransactWriteItemsInput],
            input => input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total));
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(trip) = bag.load::<Trip>() {
            count(|cost| cost.end_call(*trip));
        }
        let Some(Ok(any)) = context.output_or_error() else { return Ok(()) };
        each!(any.downcast_ref() as [GetItemOutput QueryOutput], output => read(output.consumed_capacity.iter()));
        each!(any.downcast_ref() as [BatchGetItemOutput], output => read(output.consumed_capacity.iter().flatten()));
        each!(any.downcast_ref() as [PutItemOutput UpdateItemOutput DeleteItemOutput],
            output => wrote(output.consumed_capacity.iter()));
        each!(any.downcast_ref() as [BatchWriteItemOutput TransactWriteItemsOutput],
            output => wrote(output.consumed_capacity.iter().flatten()));
        Ok(())
    }
}

fn read<'a>(capacity: impl Iterator<Item = &'a ConsumedCapacity>) {
    let units: f64 = capacity.filter_map(|capacity| capacity.capacity_units).sum();
    count(|cost| cost.read_units += units);
}

fn wrote<'a>(capacity: impl Iterator<Item = &'a ConsumedCapacity>) {
    let units: f64 = capacity.filter_map(|capacity| capacity.capacity_units).sum();
    count(|cost| cost.write_units += units);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_calls_count_as_one_trip_and_sequential_calls_as_one_each() {
        let mut cost = Cost::default();
        let (one, other) = (cost.begin_call(), cost.begin_call());
        assert_eq!(cost.trips, 1);
        cost.end_call(one);
        let next = cost.begin_call();
        cost.end_call(other);
        let beside = cost.begin_call();
        assert_eq!((cost.trips, cost.calls), (2, 4), "a late end of the first trip ends nothing of the second");
        cost.end_call(next);
        cost.end_call(beside);
        cost.begin_call();
        assert_eq!(cost.trips, 3);
    }
}
