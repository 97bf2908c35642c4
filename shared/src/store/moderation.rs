//! What moderators do: pins, the queue, approval and rejection, reports, what the host says of a record.
