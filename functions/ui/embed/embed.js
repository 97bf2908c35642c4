// The widget. So far it only defines its elements, which show nothing.

customElements.define("comment-thread", class extends HTMLElement {});
customElements.define("comment-count", class extends HTMLElement {});
