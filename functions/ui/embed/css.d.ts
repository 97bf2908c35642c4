/** The build's replacement for a style sheet that a module imports. */
declare module '*.css' {
  const css: string
  export default css
}
