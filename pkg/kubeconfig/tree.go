package kubeconfig

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxDepth is the deepest nesting: a kubeconfig of kubectl's has 7 levels.
const maxDepth = 16

// parseTree reads the one document. Of the YAML parser's errors only the line is
// told: their text can quote the file.
func parseTree(data []byte) (*yaml.Node, *Error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, refuseAsIs(Empty)
	case err != nil:
		return nil, refuseAsIs(Syntax).at("", lineOf(err))
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return document.Content[0], nil
	case err != nil:
		return nil, refuseAsIs(Syntax).at("", lineOf(err))
	}
	return nil, refuseAsIs(SeveralDocuments).at("", second.Line)
}

var errorLine = regexp.MustCompile(`^yaml: line (\d+): `)

// lineOf is the line in an error of the YAML parser's, 0 where it has none.
func lineOf(err error) int {
	match := errorLine.FindStringSubmatch(err.Error())
	if match == nil {
		return 0
	}
	line, err := strconv.Atoi(match[1])
	if err != nil {
		return 0
	}
	return line
}

// checkTree refuses what makes a YAML file mean something else than it says, before
// any field is looked at.
func checkTree(root *yaml.Node) *Error { return checkNode(root, 0) }

func checkNode(n *yaml.Node, depth int) *Error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return refuseAsIs(Alias).at("", n.Line)
	case n.Tag == "!!merge":
		return refuseAsIs(MergeKey).at("", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return refuseAsIs(Tag).at("", n.Line)
	case depth > maxDepth:
		return refuseAsIs(TooDeep).at("", n.Line)
	}
	for _, child := range n.Content {
		if refused := checkNode(child, depth+1); refused != nil {
			return refused
		}
	}
	return nil
}
