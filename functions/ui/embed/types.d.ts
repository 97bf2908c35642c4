/** What the API answers and what hosts give, for the type checker. Browsers never load this file. */

export interface User {
  id: number | null
  name: string
  avatar: string
}

/** The visitor. */
export interface OwnUser {
  id: number
  /** Null for an account that has not chosen one. */
  name: string | null
  avatar: string
}

export interface Comment {
  id: number
  body: string
  html: string
  parent_id: number | null
  is_approved: boolean
  user: User
  likes_count: number
  liked: boolean
  reported: boolean
  replies_count: number
  replies: Comment[]
  can: { update: boolean; delete: boolean; pin: boolean }
  /** Present on one's own comments that are not approved. */
  review?: { state: 'pending' | 'rejected'; reason: string | null; note: string | null }
  is_author: boolean
  is_moderator: boolean
  is_guest: boolean
  /** Present on placeholders alone: comments that are gone while their replies stay. */
  is_deleted?: true
  pinned: boolean
  pinned_at: string | null
  created_at: string
  relative_created_at: string
  updated_at: string
}

export interface Ui {
  labels: Record<string, string>
  features: Record<string, boolean>
  feeds: boolean
  /** Whether the service signs people in by codes. */
  sign_in: boolean
  report_reasons: string[]
  /** Of the moderators' page alone. An older version has none. */
  webhook_events?: string[]
  theme: string
  default_sort: string
  per_page: number
  users_route_prefix: string
  guest: { require_email: boolean; show_gravatar: boolean; likes: boolean }
  auth: { authenticated: boolean; banned: boolean; can_comment: boolean; moderator: boolean; user: OwnUser | null }
  limits: { body: number; report_details: number; media_bytes: number }
}

/** A page of comments. Walks by cursor have cursors, pages by number have numbers. */
export interface Page {
  data: Comment[]
  meta: { total: number; count?: number; closed?: boolean; next_cursor?: string | null; current_page?: number; last_page?: number }
  ui?: Ui
}

/** A token, or a function that answers one; null stands for a guest. */
export type Auth = string | null | (() => string | null | Promise<string | null>)

export interface RequestOptions {
  query?: Record<string, string | number | null | undefined>
  headers?: Record<string, string | undefined>
  body?: string | FormData
  /** After how many milliseconds there will be no answer. */
  timeout?: number
  /** What sends in place of `fetch`. */
  send?: (url: URL, init: RequestInit & { headers: Headers }) => Promise<{ ok: boolean; status: number; text: () => Promise<string> }>
  signal?: AbortSignal
  keepalive?: boolean
  cache?: RequestCache
}

/** Attributes and listeners of a new element. */
export type Attributes = {
  [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void
} & { [name: string]: any }

export type Child = Node | string | null | undefined | false

/** What an editor is for. */
export interface Purpose {
  /** The name of the draft on the device, and a part of ids. */
  draft: string
  /** The text to begin with. */
  value?: string
  placeholder: string
  /** The label of the button that sends. */
  action: string
  isEdit?: boolean
  /** Sends the text: a new comment of the thread, where nothing else is meant. */
  send?: (fields: Record<string, any>, key: string) => Promise<void>
  cancel?: () => void
}

/** A form for a text, as the reader shows it. */
export interface Composer {
  thread: any
  purpose: Purpose
  element: HTMLFormElement
  text: HTMLTextAreaElement
  /** The frame around the text field and its tools. */
  box: HTMLElement
  /** What is wrong. */
  problem: HTMLElement
  /** The row of buttons. */
  bar: HTMLElement
  /** The button that sends. */
  send: HTMLButtonElement
  /** Keeps this text as the draft. */
  keep: (body: string) => void
}

/** A composer with what the writer adds. */
export interface Editor extends Composer {
  /** Does something that may fail, and says why it did. */
  fallible: (act: () => Promise<any>) => Promise<void>
  /** Puts a string in place of what is selected, or of what is between two places. */
  insert: (string: string, start?: number, end?: number) => void
}

/** Builds an element with attributes, listeners and children. */
export type Build = <K extends keyof HTMLElementTagNameMap>(name: K, attributes?: Attributes, ...children: Child[]) => HTMLElementTagNameMap[K]

/** What a form for signing in needs, and what it does in the end. */
export interface Entrance {
  api: import('./kit/api.js').Client
  say: (key: string) => string
  explain: (error: any) => string
  /** Somebody has signed in, by the code for this address, or has another name. */
  done: (email?: string) => any
  /** Leaves the form, where there is something to go back to. */
  giveUp?: () => void
}

// The moderators' page

export interface RecordThread {
  type: string
  id: string
  title: string | null
  url: string | null
  closed: boolean
}

export type HeldFor = 'approval' | 'spam' | 'edit' | null

/** A comment in a queue. */
export interface Item extends Comment {
  reports_count: number
  thread: RecordThread
  /** The hash of a guest's network, as far as it is known. */
  network: string | null
  parent: Comment | null
  held_for: HeldFor
  verdicts: Check[]
  /** How moderators have decided about the writer; null for guests without a key. */
  writer: { approved: number; rejected: number } | null
  /** The moderator or the author of the record whose name that of a guest looks like. */
  looks_like: { id: number; name: string } | null
  rejection: Rejection | null
  reports: { reason: string; created_at: string }[]
}

/** What a check says of a text that it holds. */
export interface Check {
  rule: 'phrase' | 'links' | 'repeat' | 'akismet' | 'first_comment' | 'rejections'
  match: string | null
  detail: { count?: number; limit?: number; failure?: string; rejected?: number } | null
}

export type Reason = 'spam' | 'off_topic' | 'offensive' | 'illegal' | 'other'

/** What a moderator says about a rejection. */
export interface Grounds {
  reason: Reason | null
  note: string | null
}

export interface Rejection extends Grounds {
  /** Without an id and a name for one who was forgotten. */
  moderator: { id: number | null; name: string | null }
  created_at: string
}

/** A page of a list, and the cursor of the next one. */
export interface ListPage {
  data: Item[]
  next: string | null
}

export type Verdict = 'approve' | 'reject'
export type Action = Verdict | 'dismiss'
export type State = 'pending' | 'reported' | 'rejected' | 'all'

/** What was decided about a comment, and in which list. */
export interface Choice {
  item: Item
  action: Action
  list: import('./moderation/queue.js').CardList
}

/** Choices that were made together, when, and on what grounds. */
export interface Decision {
  choices: Choice[]
  at: number
  grounds: Grounds
}

/** Choices of one action on the same grounds. */
export interface Batch {
  action: Action
  choices: Choice[]
  grounds: Grounds
}

export interface Ban {
  banned: boolean
  banned_until: string | null
  reason: string | null
}

/** A user, or the guests of a network with the name of the one who wrote the comment. */
export interface Author extends User {
  network?: string | null
  comment_id?: number
}

/** What becomes of a banned writer's comments: of none, of those that the ban began with, or of all that were written lately. */
export type Rejects = 'none' | 'these' | 'recent'

export interface LogEntry {
  id: number | string
  created_at: string
  moderator: { id: number | null; name: string }
  action: string
  comment_id: number | null
  user_id: number | null
  thread: string | null
}

export interface Webhook {
  id: number
  url: string
  events: string[]
  enabled: boolean
}

export interface Delivery {
  id: string
  event: string
  comment_id: number | null
  status: 'pending' | 'delivered' | 'failed'
  attempts: { at: string; status: number | null; ms: number }[]
}

export type Translate = (key: string, values?: Record<string, string | number>) => string

/** Something to do about a notice, which stays for so many milliseconds, else until the next one. */
export interface Offer {
  label: string
  key?: string
  act: () => void
  for?: number
}

/** A button of a notice that says whether it is on. */
export interface Switch extends Offer {
  key: string
  isOn: () => boolean
}
