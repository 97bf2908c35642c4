/** The build replaces an imported style sheet with its text. */
declare module '*.css' {
  const css: string
  export default css
}
