//! Likes and reports: each is one transaction with the count it changes.
