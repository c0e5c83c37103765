package rehearsal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a file by its name.
type File struct {
	Name    string
	Content []byte
}

// ReadFiles reads the files at these paths. A folder stands for each .yaml,
// .yml and .json file in it and in its folders, but for those whose name begins
// with a dot, such as .git. It takes no file twice.
func ReadFiles(paths []string) ([]File, error) {
	var files []File
	seen := map[string]bool{}
	for _, path := range paths {
		names, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			content, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files = append(files, File{name, content})
		}
	}
	return files, nil
}

// filesAt is the path itself, or the files in the folder in the order of their
// names.
func filesAt(path string) ([]string, error) {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s doesn't exist", path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{path}, nil
	}
	var names []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && isRows(name):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func isRows(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}
