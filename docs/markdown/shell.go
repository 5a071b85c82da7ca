package markdown

import (
	"strings"
	"unicode"
)

// Commands splits a text of shell commands into simple commands, each a list of
// words: at line ends, ";", "&&", "||" and "|", without comments and without the
// assignments before a command. Quotes are taken off. It is enough for what the
// pages show, and no shell.
func Commands(text string) [][]string {
	var commands [][]string
	var words []string
	end := func() {
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	var word strings.Builder
	inWord := false
	quote := rune(0)
	push := func() {
		isAssignment := len(words) == 0 && isName(word.String())
		if inWord && !isAssignment {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	runes := []rune(strings.ReplaceAll(text, "\\\n", " "))
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		case strings.ContainsRune("\n;|&()", r):
			push()
			end()
		case r == ' ' || r == '\t':
			push()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	push()
	end()
	return commands
}

// isName says whether a word is an assignment, NAME=value.
func isName(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && strings.TrimFunc(name, isLetter) == ""
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
