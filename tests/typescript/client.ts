// A client for three routes, with types from openapi.yaml. It is never run, and compiling it fails if the contract
// differs from its assumptions.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Comment = components["schemas"]["Comment"];
type Refusal = components["schemas"]["Error"];

const api = createClient<paths>({ baseUrl: "https://comments.example.org/svc/api/v1" });
const headers = { Authorization: "Bearer TOKEN" };

function refused(error: Refusal): never {
  const fields = Object.entries(error.errors).map(([field, messages]) => `${field}: ${messages.join(" ")}`);
  throw new Error([error.code, error.message, ...fields].join("; "));
}

function next({ meta }: components["schemas"]["CommentList"]): string | null {
  return "next_cursor" in meta ? meta.next_cursor : null;
}

/** Fetches all comments of a thread, page by page. */
export async function list(record: string): Promise<Comment[]> {
  const comments: Comment[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { data, error } = await api.GET("/{type}/{id}/comments", {
      params: { path: { type: "posts", id: record }, query: { cursor, per_page: 50, sort: "newest" } },
    });
    if (error) refused(error);
    comments.push(...data.data);
    cursor = next(data);
  }
  return comments;
}

export async function create(record: string, body: string, parent: Comment | null): Promise<Comment> {
  const { data, error } = await api.POST("/{type}/{id}/comments", {
    params: { path: { type: "posts", id: record }, header: { "Idempotency-Key": crypto.randomUUID() } },
    body: { body, parent_id: parent?.id ?? null },
    headers,
  });
  if (error) refused(error);
  return data.data;
}

export async function like(comment: Comment): Promise<string> {
  const { data, error } = await api.POST("/comments/{id}/like", { params: { path: { id: comment.id } }, headers });
  if (error) refused(error);
  const { likes_count, liked }: { likes_count: number; liked: boolean } = data;
  return `${likes_count} likes${liked ? ", yours too" : ""}`;
}

/** Compiles only if the contract has the names used here, but no feature or label named `telepathy`. */
export function shows(ui: components["schemas"]["UiEnvelope"], comment: Comment): string[] {
  const { labels, features, auth } = ui.data;
  const first: Comment | undefined = comment.replies[0];
  const names: string[] = [comment.user.name, first?.user.name ?? labels.anonymous];
  if (features.pins && comment.can.pin && auth.authenticated) names.push(comment.pinned ? labels.unpin : labels.pin);
  // @ts-expect-error: there is no such feature
  if (features.telepathy) names.push(labels.reply);
  // @ts-expect-error: there is no such label
  return [...names, labels.telepathy];
}
