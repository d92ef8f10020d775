// Command yaml-oracle asks sigs.k8s.io/yaml, the library that kubectl reads YAML with, what it makes of texts.
// go run . < texts.txt > answers.json; a line of texts.txt is a text with \n and \t written so.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

type answer struct {
	Text  string          `json:"text"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	separator := "["
	for lines.Scan() {
		text := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(lines.Text())
		// kubectl reads by lines and ends each with a newline.
		value, err := yaml.YAMLToJSON([]byte(strings.TrimSuffix(text, "\n") + "\n"))
		one := answer{Text: text, Value: value}
		if err != nil {
			one = answer{Text: text, Error: err.Error()}
		}
		encoded, _ := json.Marshal(one)
		out.WriteString(separator + "\n" + string(encoded))
		separator = ","
	}
	out.WriteString("\n]\n")
}
