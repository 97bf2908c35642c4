//! Moves data into and out of a table: imports from other systems, exports, and the export or erasure of one person's
//! data. Also checks and repairs a table. `store` reads and writes the table.

pub mod check;
pub mod export;
pub mod import;
pub mod lease;
pub mod person;
pub mod store;
