// Package markdown reads the project's pages as its tests need them: fenced blocks
// with their markers, links, and the anchors of headings by GitHub's rule. It is no
// general reader of Markdown: it knows what the pages use.
//
// # Markers
//
// A marker is an HTML comment, which no reader sees, in the lines directly above a
// fence. Every block of YAML has one:
//
//	<!-- runnable -->
//	The block is whole objects; a test applies them to an API server, strictly.
//
//	<!-- runnable in examples/subset-level/rollout.yaml at spec.strategy -->
//	The block is a part; a test puts it into that file's Rollout at that path and
//	applies the result: maps are merged, anything else is replaced. "plugin" as the
//	path is the plugin's own block.
//
//	<!-- runnable in examples/subset-level/rollout.yaml instead of plugin -->
//	The same, but nothing of what the file has at that path is left.
//
//	<!-- fragment: why it cannot be applied -->
//	The block is only parsed. The reason is for whoever edits the page.
//
// A block of shell commands (sh) is checked without a marker: its make targets,
// files, folders, packages, tests, programs, verbs and the flags of this repository's
// programs have to exist. With <!-- runnable --> it is run, too, in the repository's
// root, and has to succeed; it should take seconds, and need nothing but what
// `make test` needs.
//
// A comment that is nearly a marker is none: the tests in docs refuse every comment
// that they do not know, and every fence that is neither sh, yaml nor plain output.
package markdown
