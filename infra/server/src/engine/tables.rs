//! Creates the table, or updates a stored one to match its definition.

use std::path::PathBuf;

use dynoxide::TableMetadata;
use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::list_tables::ListTablesRequest;
use dynoxide::actions::update_table::{
    CreateGsiAction, DeleteGsiAction, GlobalSecondaryIndexUpdate, UpdateTableRequest,
};
use dynoxide::actions::update_time_to_live::{TimeToLiveSpecification, UpdateTimeToLiveRequest};
use dynoxide::types::{AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement};
use serde::Deserialize;

use super::{Connections, Engine, EngineError, parse_stored};
use crate::files;

/// The properties of a table in the template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TableDefinition {
    pub key_schema: Vec<KeySchemaElement>,
    pub attribute_definitions: Vec<AttributeDefinition>,
    #[serde(default)]
    pub global_secondary_indexes: Vec<GlobalSecondaryIndex>,
    #[serde(default)]
    pub time_to_live_specification: Option<TimeToLiveSpecification>,
    #[serde(default)]
    pub stream_specification: Option<StreamSpecification>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamSpecification {
    pub stream_view_type: String,
}

impl Engine {
    /// Creates the table, or updates the indexes and the TTL of a stored one. If the first table of a file can't be
    /// created, for example because the disk is full, removes the file: a partial table would pass for a complete one.
    pub fn create_table(&self, name: &str, definition: &TableDefinition) -> Result<(), EngineError> {
        let connections = self.shared.connections();
        let is_first = connections.database.list_tables(ListTablesRequest::default())?.table_names.is_empty();
        connections.create_table(name, definition).map_err(|cause| {
            if !is_first {
                return cause;
            }
            let path = PathBuf::from(&self.shared.file);
            files::remove_database(&path);
            EngineError::Failed { path, cause: Box::new(cause) }
        })
    }
}

impl Connections {
    fn create_table(&self, name: &str, definition: &TableDefinition) -> Result<(), EngineError> {
        let stored = self.database.get_table_metadata(name)?;
        match &stored {
            None => self.create(name, definition)?,
            Some(stored) => self.update_indexes(name, stored, definition)?,
        }
        let Some(ttl) = &definition.time_to_live_specification else { return Ok(()) };
        let unchanged = stored
            .is_some_and(|stored| stored.ttl_enabled && stored.ttl_attribute.as_ref() == Some(&ttl.attribute_name));
        if !unchanged {
            self.database.update_time_to_live(UpdateTimeToLiveRequest {
                table_name: name.to_owned(),
                time_to_live_specification: ttl.clone(),
            })?;
        }
        Ok(())
    }

    fn create(&self, name: &str, definition: &TableDefinition) -> Result<(), EngineError> {
        let indexes = &definition.global_secondary_indexes;
        self.database.create_table(CreateTableRequest {
            table_name: name.to_owned(),
            key_schema: definition.key_schema.clone(),
            attribute_definitions: definition.attribute_definitions.clone(),
            global_secondary_indexes: (!indexes.is_empty()).then(|| indexes.clone()),
            billing_mode: Some("PAY_PER_REQUEST".to_owned()),
            ..CreateTableRequest::default()
        })?;
        Ok(())
    }

    fn update_indexes(
        &self,
        name: &str,
        stored: &TableMetadata,
        definition: &TableDefinition,
    ) -> Result<(), EngineError> {
        let stored_key: Vec<KeySchemaElement> = parse_stored(&stored.key_schema)?;
        if stored_key != definition.key_schema {
            return Err(EngineError::KeyDiffers(name.to_owned()));
        }
        let stored: Vec<GlobalSecondaryIndex> =
            stored.gsi_definitions.as_deref().map_or(Ok(Vec::new()), parse_stored)?;
        let wanted = &definition.global_secondary_indexes;
        let stale = stored.iter().filter(|index| !wanted.contains(index)).map(deletion);
        let missing = wanted.iter().filter(|index| !stored.contains(index)).map(creation);
        // `UpdateTable` accepts one index change at a time.
        for update in stale.chain(missing) {
            self.database.update_table(UpdateTableRequest {
                table_name: name.to_owned(),
                attribute_definitions: update.create.is_some().then(|| definition.attribute_definitions.clone()),
                global_secondary_index_updates: Some(vec![update]),
                ..UpdateTableRequest::default()
            })?;
        }
        Ok(())
    }
}

fn deletion(index: &GlobalSecondaryIndex) -> GlobalSecondaryIndexUpdate {
    let delete = DeleteGsiAction { index_name: index.index_name.clone() };
    GlobalSecondaryIndexUpdate { delete: Some(delete), ..GlobalSecondaryIndexUpdate::default() }
}

fn creation(index: &GlobalSecondaryIndex) -> GlobalSecondaryIndexUpdate {
    let create = CreateGsiAction {
        index_name: index.index_name.clone(),
        key_schema: index.key_schema.clone(),
        projection: index.projection.clone(),
    };
    GlobalSecondaryIndexUpdate { create: Some(create), ..GlobalSecondaryIndexUpdate::default() }
}
