import vue from '@vitejs/plugin-vue'

const isCustomElement = (tag) => tag.startsWith('comment-')

export default { plugins: [vue({ template: { compilerOptions: { isCustomElement } } })] }
