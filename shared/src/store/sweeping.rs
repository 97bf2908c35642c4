//! What follows from a change and is done behind the table's stream, safe to do twice.
