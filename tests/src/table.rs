//! Reads and changes items of the table directly, without the service.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue::{self, M, N, S};
use shared::domain::comment::Comment;
use shared::domain::ids::CommentId;
use shared::store::Reading;
use transfer::store::fixtures::import_fixture;

use crate::World;
use crate::settings::TABLE;

pub type Item = HashMap<String, AttributeValue>;

impl World {
    pub async fn item(&self, pk: &str, sk: &str) -> Option<Item> {
        let get = self.client().get_item().table_name(TABLE).consistent_read(true);
        get.key("pk", text(pk)).key("sk", text(sk)).send().await.expect("the table answers").item
    }

    pub async fn items(&self) -> Vec<Item> {
        let (client, mut items, mut start) = (self.client(), Vec::new(), None);
        loop {
            #[expect(clippy::disallowed_methods, reason = "a test may read the whole table")]
            let scan = client.scan().table_name(TABLE).consistent_read(true).set_exclusive_start_key(start);
            let page = scan.send().await.expect("the table answers");
            items.extend(page.items.unwrap_or_default());
            start = page.last_evaluated_key;
            if start.is_none() {
                return items;
            }
        }
    }

    /// Sets an attribute, or removes it if there is no value.
    pub async fn set(&self, pk: &str, sk: &str, name: &str, value: Option<AttributeValue>) {
        let update = self.client().update_item().table_name(TABLE).key("pk", text(pk)).key("sk", text(sk));
        let update = update.expression_attribute_names("#name", name);
        let update = match value {
            Some(value) => update.update_expression("SET #name = :value").expression_attribute_values(":value", value),
            None => update.update_expression("REMOVE #name"),
        };
        update.send().await.expect("the attribute is stored");
    }

    pub async fn remove(&self, pk: &str, sk: &str) {
        let delete = self.client().delete_item().table_name(TABLE).key("pk", text(pk)).key("sk", text(sk));
        delete.send().await.expect("the item is removed");
    }

    /// Adds a comment as an import does, with its id and likes. Returns the id.
    pub async fn import(&self, comment: &Comment) -> u64 {
        assert!(import_fixture(&self.store(), comment).await.expect("the table answers"), "{comment:?}");
        comment.id.0
    }

    /// Deletes a comment, regardless of its writer.
    pub async fn delete(&self, id: u64) {
        let found =
            self.store().comment_with_ancestors(CommentId(id), Reading::Consistent).await.expect("the table answers");
        let deleted = self.store().delete(found.expect("the comment exists")).await;
        assert!(deleted.expect("the table answers"), "{id} is a placeholder already");
    }

    pub async fn set_of_comment(&self, id: u64, name: &str, value: Option<AttributeValue>) {
        self.set(&format!("C#{id}"), "C", name, value).await;
    }

    /// Sets the hash of a user's `sub`, or removes it.
    pub async fn seed_subject(&self, id: u64, hash: Option<&str>) {
        self.set(&format!("U#{id}"), "U", "sh", hash.map(text)).await;
    }

    /// Sets the `iat` of the token that set a user's name.
    pub async fn seed_issued_at(&self, id: u64, seconds: i64) {
        self.set(&format!("U#{id}"), "U", "ia", Some(N(seconds.to_string()))).await;
    }

    pub async fn seed_pin(&self, thread: &str, comment: u64) {
        let pin = [("c".to_owned(), N(comment.to_string())), ("at".to_owned(), N(self.now().0.to_string()))];
        self.set(&format!("T#{}", thread.replace('/', "#")), "T", "pin", Some(M(pin.into()))).await;
    }
}

fn text(text: &str) -> AttributeValue {
    S(text.to_owned())
}
