// The moderators' element. So far it shows nothing.

customElements.define("comment-moderation", class extends HTMLElement {});
