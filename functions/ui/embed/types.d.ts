/** Short names for the API's types, and types that several modules share. Only the type checker reads this file. */

import type { components } from './schema.d.ts'

type Schemas = components['schemas']

export type User = Schemas['User']
export type OwnUser = Schemas['Visitor']
export type Comment = Schemas['Comment']
export type Ui = Schemas['Ui']

/** A token, or a function that returns one; null for a guest. */
export type Auth = string | null | (() => string | null | Promise<string | null>)

export interface RequestOptions {
  query?: Record<string, string | number | null | undefined>
  headers?: Record<string, string | undefined>
  body?: string | FormData
  /** Milliseconds after which the request fails. */
  timeout?: number
  /** Replaces `fetch`. */
  send?: (url: URL, init: RequestInit & { headers: Headers }) => Promise<{ ok: boolean; status: number; text: () => string | Promise<string> }>
  signal?: AbortSignal
  keepalive?: boolean
  cache?: RequestCache
}

/** Attributes and listeners of a new element. */
export type Attributes = {
  [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void
} & { [name: string]: any }

export type Child = Node | string | null | undefined | false

/** Configures a composer for a new comment, a reply or an edit. */
export interface Purpose {
  /** The name of the draft, which is part of its storage key and of element ids. */
  draft: string
  value?: string
  placeholder: string
  /** The label of the button that sends. */
  action: string
  isEdit?: boolean
  /** Sends the text. The default posts a new comment to the thread. */
  send?: (fields: Record<string, any>, editor: Editor) => Promise<void>
  cancel?: () => void
}

/** A form for text, as the reader module creates it. */
export interface Composer {
  thread: any
  purpose: Purpose
  element: HTMLFormElement
  text: HTMLTextAreaElement
  /** The frame around the text field and its tools. */
  box: HTMLElement
  /** The error message. */
  problem: HTMLElement
  /** The row of buttons. */
  bar: HTMLElement
  send: HTMLButtonElement
  /** Stores this text as the draft. */
  keep: (body: string) => void
  /** The storage key of the draft. */
  kept: string
  /** The storage key of the draft written before the sign-in, as a guest or in a session that ended. */
  left: string
  /** The storage key of the flag that keeps the composer collapsed despite its draft. */
  folded: string
}

/** A composer with the writer's additions. */
export interface Editor extends Composer {
  /** The chips of the images. A composer that replaces this editor takes them over. */
  chips: HTMLElement
  /** Runs `act`, and shows the error if it fails. */
  fallible: (act: () => Promise<any>) => Promise<void>
  /** Replaces the selection, or the text from `start` to `end`, with a string. */
  insert: (string: string, start?: number, end?: number) => void
}

export type Build = <K extends keyof HTMLElementTagNameMap>(name: K, attributes?: Attributes, ...children: Child[]) => HTMLElementTagNameMap[K]

/** The options and callbacks of a sign-in form. */
export interface Entrance {
  api: import('./kit/api.js').Client
  say: (key: string) => string
  explain: (error: any) => string
  /** The sign-in methods; by default only email. */
  methods?: { id: string; name: string }[]
  /** Data to restore when the visitor returns from a provider. */
  brings?: () => object
  /** Called when the visitor has signed in or has changed the name. `email` is set after a sign-in with an emailed code. */
  done: (email?: string) => any
  /** Closes the form. Missing if the form can't be closed. */
  giveUp?: () => void
}

// The moderators' page

/** A comment in a queue. */
export type Item = Schemas['ModeratedComment']
export type RecordThread = Item['thread']
/** A check's reason to hold a text. */
export type Check = Schemas['Verdict']
export type Rejection = NonNullable<Item['rejection']>
/** A moderator's reason and note for a rejection. */
export type Grounds = Pick<Rejection, 'reason' | 'note'>
export type Reason = NonNullable<Schemas['RejectionReason']>
export type LogEntry = Schemas['LogEntry']
export type Webhook = Schemas['Webhook']
export type Delivery = Schemas['Delivery']
export type Ban = Pick<Schemas['ModeratedUser'], 'banned' | 'banned_until' | 'reason'>

/** A page of a list, and the cursor of the next page. */
export interface ListPage {
  data: Item[]
  next: string | null
}

export type Verdict = 'approve' | 'reject'
export type Action = Verdict | 'dismiss'
export type State = 'pending' | 'reported' | 'rejected' | 'all'

/** A decision about a comment, and the list where it was made. */
export interface Choice {
  item: Item
  action: Action
  list: import('./moderation/queue.js').CardList
  /** The reply to send once the comment is approved. */
  reply?: string
}

/** Choices that were made together, with their time and grounds. */
export interface Decision {
  choices: Choice[]
  /** Set instead of choices if the decision closes or reopens a thread. */
  toggle?: { thread: RecordThread, closed: boolean }
  at: number
  grounds: Grounds
}

/** Choices with the same action and grounds. */
export interface Batch {
  action: Action
  choices: Choice[]
  grounds: Grounds
}

/** A user, or all guests of a network. A network has the name and the comment of one of its guests. */
export interface Author extends User {
  network?: string | null
  comment_id?: number
}

/** The comments of a banned writer to reject: none, those for which the moderator opened the ban dialog, or all recent ones. */
export type Rejects = 'none' | 'these' | 'recent'

export type Translate = (key: string, values?: Record<string, string | number>) => string

/** An action in a notice. The notice stays for `for` milliseconds, or else until the next notice. */
export interface Offer {
  label: string
  key?: string
  act: () => void
  for?: number
}

/** A toggle button of a notice. */
export interface Switch extends Offer {
  key: string
  isOn: () => boolean
}
