//! The schema of the table: every item with its key and attributes, and every index. `README.md` next to this file is generated
//! from it (`UPDATE_FILES=1 cargo test --workspace schema`). Code refers to attributes by their constants, such as
//! [`comment::LIKES`]. Their names in the table are short, because a page reads forty comments and pays by the byte.
//!
//! `keys` builds and parses the keys, and `domain` defines the values. Tests compare both with this file.

/// Key attributes of every item.
pub const PK: &str = "pk";
pub const SK: &str = "sk";

pub struct Kind {
    pub name: &'static str,
    pub pk: &'static str,
    pub sk: &'static str,
    pub key_names: Option<Names>,
    pub export: Export,
    pub read_by: &'static str,
    pub attributes: &'static [Attribute],
    /// The attributes that are only index keys.
    pub index_keys: &'static [Attribute],
}

/// An attribute of an item, or of a map inside an item. It may be missing if it has its default (false, 0, nothing).
#[derive(Debug)]
pub struct Attribute {
    pub name: &'static str,
    /// The name of the attribute's constant.
    pub constant: &'static str,
    pub ty: Type,
    pub names: Option<Names>,
    pub meaning: &'static str,
}

/// The type of an attribute. Most names are those of `DynamoDB`, but `B` is a boolean.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    S,
    N,
    B,
    NS,
    SS,
    L(&'static Self),
    /// A map: its name in `maps`, and its attributes.
    M(&'static str, &'static [Attribute]),
    /// A map of lists of numbers. The map's keys are data.
    MLN,
    Any,
}

/// The way in which a key or an attribute may identify a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    User,
    Visitor,
    /// An index key, which may end in the id of a visitor or a user.
    Index,
    /// A picture, which may be the hash of an address.
    Picture,
    /// A keyed hash, or a sealed address.
    Hash,
    /// The name of the person that another attribute identifies.
    Name,
    /// Text that a person wrote. It may contain anyone's name.
    Words,
}

/// The treatment of an item in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// The item is exported.
    Record,
    /// The item is derived from exported items.
    Derived,
    No,
}

macro_rules! ty {
    (L S) => {
        Type::L(&Type::S)
    };
    (L N) => {
        Type::L(&Type::N)
    };
    (L $map:ident) => {
        Type::L(&Type::M(stringify!($map), maps::$map::ATTRIBUTES))
    };
    (M $map:ident) => {
        Type::M(stringify!($map), maps::$map::ATTRIBUTES)
    };
    ($plain:ident) => {
        Type::$plain
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($names:ident) => {
        Some(Names::$names)
    };
}

macro_rules! attributes {
    ($list:ident; $($constant:ident $name:literal $ty:ident $(($of:ident))? $(names $names:ident)? $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $constant: &str = $name;
        )*
        pub const $list: &[Attribute] = &[$(Attribute {
            name: $name,
            constant: stringify!($constant),
            ty: ty!($ty $($of)?),
            names: optional!($($names)?),
            meaning: $meaning,
        }),*];
    };
}

macro_rules! items {
    ($(
        $kind:ident $name:literal {
            key $pk:literal $sk:literal $(names $person:ident)?; export $export:ident; read $read_by:literal;
            $(attributes { $($attributes:tt)* })?
            $(index { $($index:tt)* })?
        }
    )*) => {
        $(
            pub mod $kind {
                #[allow(unused_imports, reason = "some items have no attributes")]
                use super::{Attribute, Export, Kind, Names, Type, maps};
                attributes! { ATTRIBUTES; $($($attributes)*)? }
                attributes! { INDEX_KEYS; $($($index)*)? }
                pub const KIND: Kind = Kind {
                    name: $name,
                    pk: $pk,
                    sk: $sk,
                    key_names: optional!($($person)?),
                    export: Export::$export,
                    read_by: $read_by,
                    attributes: ATTRIBUTES,
                    index_keys: INDEX_KEYS,
                };
            }
        )*
        pub const KINDS: &[&Kind] = &[$(&$kind::KIND),*];
    };
}

macro_rules! maps {
    ($($map:ident { $($attributes:tt)* })*) => {
        /// Attributes of maps inside items.
        pub mod maps {
            $(
                pub mod $map {
                    #[allow(unused_imports, reason = "few maps hold others")]
                    use super::super::{Attribute, Names, Type, maps};
                    attributes! { ATTRIBUTES; $($attributes)* }
                }
            )*
            #[cfg(test)]
            pub const ALL: &[(&str, &[super::Attribute])] = &[$((stringify!($map), $map::ATTRIBUTES)),*];
        }
    };
}

// Times are in Unix milliseconds unless stated otherwise. `L(N)` is a list of numbers, and `L(verdict)` a list of the
// maps `verdict` below.
items! {
    comment "comment" {
        key "C#id" "C"; export Record; read "every route by id";
        attributes {
            ID             "i"   N                        "id; sort key of `time` and `author`";
            THREAD         "t"   S                        "thread: `type#record`";
            ANCESTORS      "p"   L(N)                     "ids of the ancestors, top-level comment first";
            USER           "u"   N         names User     "the writer's user id; missing for guests";
            GUEST          "g"   S         names Visitor  "visitor of a guest: by the key, or by network and user agent";
            NETWORK        "nw"  S         names Hash     "hash of a guest's network";
            NAME           "n"   S         names Name     "the writer's name; missing from placeholders";
            AVATAR         "av"  S         names Picture  "picture: a URL, or `g:` and a Gravatar hash";
            ADDRESS        "ah"  S         names Hash     "keyed hash of a guest's address";
            BY_MODERATOR   "mo"  B                        "the writer was a moderator";
            BODY           "b"   S         names Words    "body, Markdown; missing from placeholders";
            MENTIONS       "m"   L(S)      names Words    "handles mentioned in the body";
            EDITED_AT      "e"   N                        "time of the last edit";
            STATE          "s"   S                        "state: `pending` or `rejected`; missing when approved";
            IN_REVIEW      "rv"  B                        "approved, but an edit waits for review";
            SUSPICIOUS     "sp"  B                        "the spam check flagged a text that was awaiting approval";
            VERDICTS       "vd"  L(verdict) names Words   "why the text is held; dropped when it is approved";
            PLACEHOLDER    "ph"  B                        "placeholder of a deleted comment: approved, without writer, body, likes or reports";
            SOURCE         "so"  S         names Words    "source of an imported comment: the format, the site if known, and the id at the source, such as `disqus:558` or `disqus@blog:558`";
            LIKES          "lc"  N                        "number of likes, imported ones included";
            IMPORTED_LIKES "il"  N                        "number of likes that were imported without voters";
            REPLIES        "rc"  N                        "number of approved direct replies";
            FINGERPRINT    "fp"  N                        "fingerprint of the replies counted in `rc`; top-level comments only";
            INLINE         "ld"  NS                       "ids of the inline replies";
            HAS_SEPARATE   "tr"  B                        "there are, or were, separate replies; never unset";
            REPORTS        "rp"  N                        "number of reports";
            REPORTED       "ro"  B                        "a report is open";
            NEWEST_REPORTS "rl"  L(excerpt) names Words   "excerpts of the newest three reports, newest first";
            RESOLUTIONS    "rs"  L(resolution)            "resolutions of reports, oldest first";
            PAGE           "pg"  M(page)   names Words    "title and address that the page reported; top-level comments only";
            SUBSCRIBED     "sb"  B                        "the writer subscribed to replies";
            SUBSCRIPTION   "su"  M(subscription) names Hash "where notifications go, until the comment is approved";
            BY_TRUST       "bt"  B                        "shown without a decision while comments of new writers were held";
            WAS_SHOWN      "ws"  B                        "it was public before a moderator rejected it, so it doesn't notify again";
            REJECTION      "rj"  M(rejection) names Words     "the rejection: reason, note, moderator and time";
            DECIDED        "de"  N                        "id of the latest decision, of its log entry if it has one; missing where it changed nothing";
            DELETION_GUARD "dg"  N                        "raised by changes of unapproved replies, so that a deletion notices; missing if there never were any";
        }
        index {
            THREAD_KEY     "tk"  S         names Index    "partition key of `thread`";
            THREAD_SORT    "ts"  S                        "sort key of `thread`";
            ORDER_KEY      "ok"  S         names Index    "partition key of `time`, `likes` and `replied`";
            LIKES_RANK     "l"   N                        "sort key of `likes`, which `most_liked` reads; top-level comments only";
            REPLIES_RANK   "d"   N                        "sort key of `replied`; top-level comments only";
            AUTHOR_KEY     "a"   S         names Index    "partition key of `author`; missing for guests whose network is not known";
        }
    }
    report "report" {
        key "C#id" "R#id"; export Record; read "moderators, newest first";
        attributes {
            ID             "id"  N                        "id, ordered by time";
            REASON         "r"   S         names Words    "reason, and details after a colon";
            CREATED_AT     "c"   N                        "time of the report";
            VISITOR        "v"   S         names Visitor  "visitor who reported";
            USER           "u"   N         names User     "user id of the reporter; missing for guests";
            NAME           "n"   S         names Name     "name of the reporter";
            AVATAR         "av"  S         names Picture  "picture of the reporter";
        }
    }
    hidden_reply "hidden reply" {
        key "C#parent" "H#id"; export Derived; read "the clean-up below a deleted comment; it names an unapproved reply";
    }
    guest_bound "guest bound" {
        key "C#id" "G#hash"; export Record; read "limits of a network's guest likes and reports";
        attributes {
            COUNT          "n"   N                        "likes or reports by guests of the network";
        }
    }
    thread "thread" {
        key "T#type#record" "T"; export Record; read "lists: count, pin, author";
        attributes {
            PARENTS        "n"   N                        "number of approved top-level comments";
            PIN            "pin" M(pin)                   "the pin";
            AUTHOR         "au"  N         names User     "user id of the record's author";
            TITLE          "ti"  S         names Words    "title of the record";
            URL            "url" S         names Words    "address of the record";
            PAGE_TITLE     "pt"  S         names Words    "title that a page reported, used where the host sets none";
            PAGE_URL       "pu"  S         names Words    "address that a page reported, used where the host sets none";
            CLOSED         "cl"  B                        "a moderator closed the thread, or (false) opened it; missing while its age decides";
            OPENED_AT      "op"  N                        "when the first public top-level comment was written";
        }
    }
    counted "counted comment" {
        key "T#type#record" "K#id"; export Derived; read "the newest comments of a thread; a comment counts while it exists";
        attributes {
            IS_FIRST       "f"   B                        "counted because a comment above it became public for the first time; `events` notifies of it";
        }
    }
    count "count" {
        key "T#type#record" "K"; export Derived; read "comment counts of threads";
        attributes {
            COUNT          "n"   N                        "number of counted comments";
        }
    }
    visitor_state "visitor's thread state" {
        key "V#visitor#type#record" "V" names Visitor; export Record;
        read "lists: own likes, reports, unapproved comments; makes a second report impossible";
        attributes {
            LIKED          "lk"  NS                       "ids of liked comments";
            REPORTED       "rd"  NS                       "ids of reported comments";
            FULL           "fl"  B                        "full: further entries go into overflow items; never unset";
            HIDDEN_PARENTS "up"  N                        "number of own unapproved top-level comments";
            HIDDEN_REPLIES "ur"  N                        "number of own unapproved replies";
            HIDDEN_SEPARATE "ut" B                        "some of them are, or were, separate; never unset";
        }
    }
    visitor_overflow "overflow" {
        key "V#visitor#type#record" "V#parent" names Visitor; export Record;
        read "the same, for one parent and its replies";
        attributes {
            LIKED          "lk"  NS                       "ids of liked comments";
            REPORTED       "rd"  NS                       "ids of reported comments";
        }
    }
    user "user" {
        key "U#id" "U" names User; export Record; read "requests of signed-in users";
        attributes {
            ID             "u"   N         names User     "user id";
            NAME           "n"   S         names Name     "name";
            AVATAR         "av"  S         names Picture  "picture";
            TOKEN_ISSUED_AT "ia"  N                        "`iat` of the newest token that named the user, in Unix seconds";
            LEARNED_AT     "la"  N                        "when the name was saved, in Unix seconds";
            RENAMED_AT     "ra"  N                        "when the name or the picture last changed, in Unix seconds; no two changes have the same";
            COMMENTS_AT    "ca"  N                        "when old comments got the new name or picture, or the earliest time for that, in Unix seconds";
            SUBJECT        "sh"  S         names Hash     "hash of the token's subject, where the id is a hash as well";
            ISSUER         "ir"  S                        "`iss` of the tokens, where the id is a hash";
            BAN            "bn"  M(ban)    names Words    "ban";
            BAN_ID         "bi"  N                        "id of the ban, ordered by time";
            IMPORTED_BAN   "ib"  N                        "id of a ban that was imported, which is not imported again";
            APPROVED       "ap"  NS                       "at most 20 comments whose latest decision is an approval";
            REJECTED       "np"  NS                       "the newest 20 comments whose latest decision is a rejection";
            ACCOUNT        "ac"  M(account) names Hash    "account of a user who signs in by code or through a provider";
        }
    }
    guest "guest" {
        key "G#visitor" "G" names Visitor; export No; read "trust in a guest with a key";
        attributes {
            APPROVED       "ap"  NS                       "as of users";
            REJECTED       "np"  NS                       "as of users";
        }
    }
    handle "handle" {
        key "H#handle" "U#id" names User; export Derived; read "mentions";
    }
    name_fragment "name fragment" {
        key "N#rank#letter" "text#id" names User; export Derived; read "the name search";
        attributes {
            ID             "u"   N         names User     "user id";
            NAME           "n"   S         names Name     "name";
            AVATAR         "av"  S         names Picture  "picture";
            BAN            "bn"  M(ban)    names Words    "ban";
        }
    }
    queue "queue entry" {
        key "Q#state#shard" "id"; export Derived; read "moderators; the state `all` has the comments of the last 30 days";
        attributes {
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds; in the state `all` only";
        }
    }
    source "source" {
        key "S#source" "S"; export Record;
        read "imports: the comment that was imported from there; its tombstone once it is deleted";
        attributes {
            COMMENT        "i"   N                        "id of the comment";
            DELETED        "dl"  B                        "the comment was deleted and does not come back: a tombstone";
            THREAD         "th"  S                        "short hash of the page there, which tells two sites apart";
            WRITER         "wr"  S                        "short hash of the writer there, for the same";
        }
    }
    log "log" {
        key "A" "id"; export No; read "the log of moderators' actions";
        attributes {
            ID             "id"  N                        "id, ordered by time";
            MODERATOR      "mo"  N         names User     "user id of the moderator; missing if erased";
            NAME           "n"   S         names Name     "name of the moderator";
            ACTION         "ac"  S                        "what the moderator did: `approve`, `ban`, `close` and so on";
            COMMENT        "c"   N                        "comment";
            USER           "u"   N         names User     "user id of the banned user, or of the comment's writer; missing for guests";
            THREAD         "t"   S                        "thread";
            REJECTS        "rr"  S         names Visitor  "whose recent comments are rejected: `u` and a user id, or `n` and the hash of a network";
        }
    }
    banned "banned" {
        key "B" "id"; export Derived; read "moderators: who is banned; expires with the ban";
        attributes {
            USER           "u"   N         names User     "user id; missing for a network";
            NETWORK        "nw"  S                        "hash of a network; missing for a user";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    network_ban "network's ban" {
        key "X#network" "X"; export No; read "guests' writes: their network's ban; expires with it";
        attributes {
            ID             "bi"  N                        "id of the ban, ordered by time";
            BAN            "bn"  M(ban)    names Words    "ban";
            COMMENT        "c"   N                        "guest's comment through which the network was banned";
            THREAD         "t"   S                        "thread of the comment";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    forgotten "forgotten person" {
        key "F" "hash"; export No; read "imports: this person's data is not imported again";
        attributes {
            FORGOTTEN_AT   "c"   N                        "when the person was erased";
            SALT           "sf"  S                        "fingerprint of the salt of the hash";
        }
    }
    erasure "erasure" {
        key "F#hash" "J"; export No; read "an erasure under way: the person's identifiers";
        attributes {
            NAMES          "nm"  L(S)                     "names";
            ADDRESSES      "ad"  L(S)                     "hashes of addresses";
            VISITORS       "vs"  L(S)                     "visitors";
            SUBJECTS       "sj"  L(S)                     "hashes of subjects";
            RECIPIENTS     "re"  L(S)                     "recipients of emails";
            SEALED         "se"  L(S)                     "sealed addresses";
            INBOXES        "ib"  L(S)                     "inboxes of codes";
            HAS_PICTURE    "pi"  B                        "the profile has a picture that does not come from an address";
            PROFILE_CHANGED "rn"  B                        "the profile has changed, so others may have used a name that is no longer stored";
        }
    }
    erased_comment "erased comment" {
        key "F#hash" "id"; export No;
        read "an erasure under way: a placeholder to remove once nothing is below it";
    }
    import_journal "import journal" {
        key "J#type#record" "J"; export No; read "imports: the thread is being written";
        attributes {
            VISITORS       "n"   N                        "number of finished transactions for visitors";
            PLAN           "f"   S                        "comments are written in batches: hash of everything that determines them and their counts";
            LAST           "c"   N                        "comments are written one by one: id of the last one, which may not be counted";
        }
    }
    import_lease "import lease" {
        key "J#lease" "J"; export No; read "imports: one runs at a time; expires";
        attributes {
            HOLDER         "h"   S                        "holder";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    native_import "native import" {
        key "J#salt" "J"; export No; read "native imports: whether an import of the same file began; exports, erasures, checks: whether an import is unfinished; exports: the salt of imported hashes";
        attributes {
            SALT           "h"   S                        "fingerprint of another salt that made imported hashes";
            FILE           "f"   S                        "hash of the records of the file";
            UNFINISHED     "u"   B                        "the import has not ended; missing when it has";
        }
    }
    limiter "limiter" {
        key "L#scope#caller#time" "L" names Visitor; export No;
        read "writes, every tenth read; by the hour or the day: mentions, enrolments, codes to sign in; codes that are stopped; expires";
        attributes {
            COUNT          "n"   N                        "requests booked, or what else is counted";
            ADDRESSES      "es"  SS                       "hashes of the counted addresses, which were asked to confirm";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    repeat "repeat" {
        key "P#visitor#hash" "P" names Visitor; export No; read "the spam check; expires";
        attributes {
            REQUEST        "rq"  S                        "the request that wrote the text";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    idempotency "idempotency" {
        key "I#visitor#hash" "I" names Visitor; export No; read "a repeated POST; expires";
        attributes {
            REQUEST        "rq"  S                        "hash of the request's content";
            ANSWER         "an"  Any                      "reference to the result: a comment id, the name of an image, or null";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    notification_state "notification state" {
        key "E#recipient" "E" names Hash; export No; read "a recipient's email notifications";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            STATE          "st"  S                        "state: `asked`, `on`, `off`, `bounced`; missing when new";
            ADDRESS        "ad"  M(address) names Hash    "address that is confirmed, or bounced";
            ASKERS         "ak"  L(asker)  names Hash     "visitors who gave the address without proof";
            REPLIES        "re"  B                        "a member is notified of replies";
            MENTIONS       "me"  B                        "a member is notified of mentions";
            OWN_RECORDS    "ow"  B                        "a member is notified of comments on their own records";
            MUTED          "mu"  L(S)                     "hashes of muted threads";
            WAITING        "wt"  NS                       "comments waiting for the next email; from 2^63 up, rejections";
            MORE           "wm"  N                        "number of further waiting comments";
            IN_FLIGHT      "fl"  NS                       "comments in the email being sent";
            MORE_IN_FLIGHT "fm"  N                        "number of further comments in that email";
            NOTIFIED       "td"  NS                       "comments (for moderators, queue entries) emailed recently";
            NOTIFIED_BEFORE "ty" NS                       "comments (for moderators, queue entries) emailed before those in `td`";
            NOTIFIED_SINCE "ro"  N                        "when `td` was started";
            DUE            "du"  N                        "when the next email is due";
            CLAIM          "cl"  M(claim)                 "claim of a worker";
            SENT           "se"  L(N)                     "times of the emails of the last 24 hours";
            REFUSALS       "rf"  N                        "how often the mail server has refused";
            REFUSED_SINCE  "rs"  N                        "when the mail server began to refuse";
            CONFIRMING     "cf"  S                        "asker whose confirmation is being sent";
            CONFIRMATIONS  "cn"  L(confirmation)          "confirmations of the last week";
            ASIDE          "as"  NS                       "comments left out of an email, because the text waits for a moderator or the rejection was undone";
            STOPPED_AT     "so"  N                        "when emails were last stopped";
            CHOSEN_AT      "ch"  N                        "when the member last chose";
            PROVEN         "pv"  S                        "hash of a confirmed address that was deleted because emails were stopped";
        }
    }
    inbox "inbox" {
        key "O#hash" "O" names Hash; export No; read "sign-in: the codes that an address was sent; expires";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            FLOWS          "fl"  L(flow)   names Hash     "valid codes";
            UNKNOWN        "cu"  MLN                      "times of the unused codes of the last day, which are limited, in Unix seconds, by hash of the network";
            KNOWN          "ck"  MLN                      "the same, for networks that the address had signed in from";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
    redirect_flow "redirect flow" {
        key "R#hash" "R"; export No; read "sign-in with an account elsewhere: the callback, and the page that finishes; expires";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            PROVIDER       "pr"  S                        "provider";
            CHALLENGE      "ch"  S                        "challenge of the page's verifier";
            STARTED        "st"  M(redirect_started)      "what the callback needs, until it is reached";
            RETURNED       "re"  M(redirect_returned) names Hash "what finishing needs, since the callback";
            USER           "u"   N         names User     "id of the account, since the callback";
            TRIES          "tr"  N                        "wrong codes";
            ENDS           "x"   N                        "when the flow ends and the item expires, in Unix seconds";
        }
    }
    sessions "sessions" {
        key "Z#id" "Z" names User; export No; read "sign-in: refreshing and ending a session";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            EPOCH          "ep"  N                        "epoch of the account when they began";
            SESSIONS       "se"  L(session)               "sessions, oldest first";
            NETWORKS       "nw"  L(S)                     "hashes of the networks that the account signed in from lately";
        }
    }
    public_keys "public keys" {
        key "K" "K"; export No; read "verification of access tokens; only the function that signs may write it";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            CURRENT        "k"   S                        "public key of the present seed";
            PREVIOUS       "p"   S                        "the previous one";
            CHANGED_AT     "c"   N                        "when the present one replaced it, in Unix seconds";
        }
    }
    moderator_names "moderators' names" {
        key "Y" "M"; export No; read "sign-in and the queue: names reserved for moderators";
        attributes {
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            NAMES          "ls"  L(moderator_name) names User "name of each";
        }
    }
    endpoint "endpoint" {
        key "W" "id"; export No; read "webhooks: an address that is notified of events";
        attributes {
            ID             "id"  N                        "id, ordered by time";
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            URL            "url" S                        "address";
            EVENTS         "ev"  L(S)                     "names of the events it subscribes to";
            ENABLED        "en"  B                        "enabled";
            SECRET         "se"  S                        "the secret that signs, sealed";
            FAILING_SINCE  "fs"  N                        "when attempts began to fail";
            UNWARNED       "un"  B                        "it was disabled after failing, and the moderators have not been warned";
        }
    }
    endpoint_count "number of endpoints" {
        key "W" "W"; export No; read "the limit on webhooks";
        attributes {
            COUNT          "n"   N                        "number of endpoints";
        }
    }
    delivery "delivery" {
        key "W#endpoint" "number#hash"; export No; read "webhooks: a message and its attempts; expires";
        attributes {
            MESSAGE        "mg"  S                        "id of the message";
            VERSION        "vn"  N                        "number of changes, for the condition of the next one";
            EVENT          "ev"  S                        "name of the event";
            HAPPENED_AT    "ha"  N                        "when it happened";
            COMMENT        "c"   N                        "comment";
            PARENT         "p"   N                        "parent of the comment";
            THREAD         "t"   S                        "thread";
            STATUS         "st"  S                        "`pending`, `delivered` or `failed`";
            ATTEMPTS       "tr"  L(attempt)               "attempts, oldest first";
            ROUND          "rn"  N                        "attempts since it was last sent again by hand";
            DUE            "du"  N                        "when the next attempt is due";
            CLAIM          "cl"  M(claim)                 "claim of a worker";
            EXPIRES        "x"   N                        "when the item expires, in Unix seconds";
        }
    }
}

maps! {
    verdict {
        RULE           "r"   S                            "the check that holds the text";
        MATCH          "m"   S                            "matched words, cut";
        DETAIL         "d"   M(detail)                    "details of the check";
    }
    detail {
        COUNT          "count" N                          "links in the text";
        LIMIT          "limit" N                          "number of links at which a text is held";
        FAILURE        "failure" S                        "why Akismet gave no verdict: `timeout` or `answer`";
        REJECTED       "rejected" N                       "recent rejected comments of the writer";
    }
    excerpt {
        ID             "i"   N                            "id of the report";
        REASON         "r"   S                            "reason, cut";
        CREATED_AT     "c"   N                            "time of the report";
    }
    resolution {
        UNTIL          "u"   N                            "it covers the reports until this time";
        STATUS         "s"   S                            "`reviewed` or `dismissed`";
    }
    rejection {
        REASON         "r"   S                            "`spam`, `off_topic`, `offensive`, `illegal` or `other`";
        NOTE           "n"   S                            "note to the writer";
        MODERATOR      "mo"  N         names User         "user id of the moderator; missing if erased";
        NAME           "nm"  S         names Name         "name of the moderator";
        AT             "at"  N                            "time";
        SILENT         "q"   B                            "it follows from a ban, so the writer gets no email";
    }
    page {
        TITLE          "t"   S                            "title";
        URL            "u"   S                            "address";
    }
    subscription {
        GUEST          "g"   S                            "a guest's recipient";
        ADDRESS        "a"   M(address)                   "the address";
        NETWORK        "n"   S                            "hash of the network";
    }
    address {
        SEALED         "a"   S                            "the address, sealed";
        LANGUAGE       "l"   S                            "language";
        CONFIRMED      "c"   B                            "confirmed";
    }
    pin {
        COMMENT        "c"   N                            "comment id";
        AT             "at"  N                            "time";
    }
    ban {
        UNTIL          "u"   N                            "end; missing if permanent";
        REASON         "r"   S                            "reason";
        FIRST          "s"   N                            "id of the first ban, if this one replaced others without a gap";
    }
    asker {
        NAME           "v"   S                            "hash of the visitor, or of a member's address";
        ADDRESS        "ad"  M(address)                   "the address";
        NETWORK        "n"   S                            "hash of the network";
        COMMENT        "i"   N                            "comment that asked";
        AT             "t"   N                            "when it asked";
        FROM           "f"   N                            "when the confirmation may be sent";
        ASKED_AT       "s"   N                            "when the confirmation was sent";
        HELD           "h"   NS                           "comments that wait for it";
    }
    confirmation {
        AT             "a"   N                            "time";
        NETWORK        "n"   S                            "hash of the network";
        ASKING         "v"   S                            "hash of the asker and the time";
    }
    account {
        EPOCH          "ep"  N                            "changed by signing out everywhere";
        ADDRESS        "ad"  S                            "address, sealed; for a provider's account, only if the provider verified it";
        INBOX          "ib"  S                            "hash of the mailbox; missing for a provider's account";
    }
    redirect_started {
        RETURN_TO      "to"  S                            "address of the page to return to";
        SECRETS        "se"  S                            "our verifier and nonce, sealed";
    }
    redirect_returned {
        CODE           "co"  S                            "keyed hash of the code";
        NETWORK        "nw"  S                            "keyed hash of the network that reached the callback";
        PROFILE        "pf"  S                            "the provider's profile of the reader, sealed";
    }
    flow {
        NONCE          "n"   S                            "distinguishes it from the others";
        TRIES          "tr"  N                            "number of codes tried";
        AT             "a"   N                            "when it was requested, in Unix seconds";
        HOST           "h"   S                            "host of the page that asked";
        LANGUAGE       "l"   S                            "language of the email";
        ADDRESS        "ad"  S                            "address, sealed; missing once no try is left";
    }
    moderator_name {
        ID             "u"   N         names User         "user id";
        NAME           "n"   S         names Name         "name";
    }
    session {
        NONCE          "i"   N                            "distinguishes it from the others";
        GENERATION     "g"   N                            "uses of its refresh tokens";
        USED_AT        "t"   N                            "time of the last use, in Unix seconds";
        STARTED_AT     "s"   N                            "when it began, in Unix seconds";
    }
    claim {
        OWNER          "o"   S                            "owner";
        UNTIL          "u"   N                            "end";
        AGAIN          "r"   B                            "an earlier worker died with the same email; emails only";
    }
    attempt {
        AT             "a"   N                            "time";
        STATUS         "s"   N                            "status of the response; missing without one";
        TOOK           "ms"  N                            "how long it took, in milliseconds";
    }
}

/// An index. `described` is the README's description of its partition key, its sort key and its contents.
pub struct IndexSchema {
    pub name: &'static str,
    pub partition: &'static str,
    pub sort: &'static str,
    pub described: [&'static str; 3],
}

pub const THREAD: IndexSchema = IndexSchema {
    name: "thread",
    partition: comment::THREAD_KEY,
    sort: comment::THREAD_SORT,
    described: ["`T#type#record`, or a parent's `C#parent`", "`id`, or `parent#id`", "everything"],
};
pub const TIME: IndexSchema = IndexSchema {
    name: "time",
    partition: comment::ORDER_KEY,
    sort: comment::ID,
    described: ["`T#type#record` of parents, `C#parent` of replies", "id", "keys"],
};
pub const LIKES: IndexSchema = IndexSchema {
    name: "likes",
    partition: comment::ORDER_KEY,
    sort: comment::LIKES_RANK,
    described: ["the same, parents only", "likes × 10^16 + id", "keys"],
};
pub const REPLIED: IndexSchema = IndexSchema {
    name: "replied",
    partition: comment::ORDER_KEY,
    sort: comment::REPLIES_RANK,
    described: ["the same, parents only", "replies × 10^16 + id", "keys"],
};
pub const AUTHOR: IndexSchema = IndexSchema {
    name: "author",
    partition: comment::AUTHOR_KEY,
    sort: comment::ID,
    described: ["`U#id`, or `G#network` of guests", "id", "keys"],
};
pub const INDEXES: [IndexSchema; 5] = [THREAD, TIME, LIKES, REPLIED, AUTHOR];

#[cfg(test)]
mod tests;
