/** What the API answers and what hosts give, for the type checker. Browsers never load this file. */

export interface User {
  id: number | null
  name: string
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
  report_reasons: string[]
  theme: string
  default_sort: string
  per_page: number
  users_route_prefix: string
  guest: { require_email: boolean; show_gravatar: boolean; likes: boolean }
  auth: { authenticated: boolean; banned: boolean; can_comment: boolean; moderator: boolean; user: User | null }
  limits: { body: number; report_details: number; media_bytes: number }
}

/** A page of comments. Walks by cursor have cursors, pages by number have numbers. */
export interface Page {
  data: Comment[]
  meta: { total: number; next_cursor?: string | null; current_page?: number; last_page?: number }
  ui?: Ui
}

/** A token, or a function that answers one; null stands for a guest. */
export type Auth = string | null | (() => string | null | Promise<string | null>)

export interface RequestOptions {
  query?: Record<string, string | number | null | undefined>
  body?: object
  /** The `Idempotency-Key`. */
  key?: string
  signal?: AbortSignal
  keepalive?: boolean
  /** For answers that are the same for everybody: without a token, for every cache. */
  anonymous?: boolean
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
  send: (fields: Record<string, any>, key: string) => Promise<void>
  cancel?: () => void
}

/** Builds an element with attributes, listeners and children. */
export type Build = <K extends keyof HTMLElementTagNameMap>(name: K, attributes?: Attributes, ...children: Child[]) => HTMLElementTagNameMap[K]
