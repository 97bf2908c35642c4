import type { Auth } from './index.js'
import type { components, paths } from './schema.js'

export type Schemas = components['schemas']

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Having<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never }[keyof paths]
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never

type Json<T> = T extends { content: { 'application/json': infer J } } ? J : T extends { content: { 'multipart/form-data': unknown } } ? FormData : never
/** Omits properties whose type is only `never` or `undefined`. */
type Given<T> = { [K in keyof T as [Exclude<T[K], undefined>] extends [never] ? never : K]: T[K] }
type Parameters<O> = O extends { parameters: { query?: infer Q; path?: infer P; header?: infer H } }
  ? Given<{ path: P; query?: Q; headers?: H & Record<string, string> }>
  : {}
type Body<O> = O extends { requestBody: infer B } ? { body: Json<B> } : O extends { requestBody?: infer B } ? Given<{ body?: Json<NonNullable<B>> }> : {}
type Options<O> = Parameters<O> & Body<O> & { signal?: AbortSignal }
type Answer<O> = O extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 ? Json<R[S]> : S extends 204 ? undefined : never }[keyof R] : never

type Call<M extends Method> = <P extends Having<M>>(path: P, ...options: {} extends Options<Operation<P, M>> ? [Options<Operation<P, M>>?] : [Options<Operation<P, M>>]) => Promise<Answer<Operation<P, M>>>

export type Client = { [M in Method]: Call<M> }

/**
 * Creates a client of the API at this address, which acts for the token's user, or for a guest without a token. Error
 * responses are thrown as `ApiError`.
 */
export function createClient(options: { api: string; token?: Auth }): Client

/** An error response of the API. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly errors: Record<string, string[]>
}
