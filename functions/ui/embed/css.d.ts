/** What the build makes of a style sheet that a module imports. */
declare module '*.css' {
  const css: string
  export default css
}
