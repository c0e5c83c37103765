// Command image packs a static executable into a container image of one layer: an
// OCI archive, as `ctr images import` and `docker load` take it. The same
// executable gives the same archive, byte by byte. It needs no container engine.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	name := flag.String("name", "", "name and tag of the image, such as cellcast.io/canary:dev")
	out := flag.String("o", "", "path of the archive")
	arch := flag.String("arch", runtime.GOARCH, "architecture of the executable")
	flag.Parse()
	if *name == "" || *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: image -name NAME:TAG -o FILE EXECUTABLE")
		os.Exit(2)
	}
	if err := pack(*name, *arch, flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// pack writes the archive.
func pack(name, arch, executable, out string) error {
	program, err := os.ReadFile(executable)
	if err != nil {
		return fmt.Errorf("reading the executable: %w", err)
	}
	content, err := archive(name, arch, filepath.Base(executable), program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	if err := os.WriteFile(out, content, 0o644); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// nobody is who the program runs as unless the pod says otherwise.
const nobody = "65532:65532"

// archive is an OCI image layout as a tar: https://github.com/opencontainers/image-spec.
func archive(name, arch, base string, program []byte) ([]byte, error) {
	layer, err := tarOf(file{base, 0o755, program})
	if err != nil {
		return nil, err
	}
	blobs := &blobs{}
	layerRef := blobs.add("application/vnd.oci.image.layer.v1.tar", layer)
	config, err := blobs.addJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": arch,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + base}, "User": nobody},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layerRef.Digest}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := blobs.addJSON(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layerRef},
	})
	if err != nil {
		return nil, err
	}
	manifest.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name[strings.LastIndexByte(name, ':')+1:],
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return nil, fmt.Errorf("encoding the index: %w", err)
	}
	return tarOf(append(blobs.files,
		file{"index.json", 0o644, index},
		file{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)})...)
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// descriptor says where a blob is, and what it is.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blobs are the contents of an image, each a file named by its digest.
type blobs struct{ files []file }

func (b *blobs) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	b.files = append(b.files, file{"blobs/sha256/" + sum, 0o644, content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (b *blobs) addJSON(mediaType string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, fmt.Errorf("encoding %s: %w", mediaType, err)
	}
	return b.add(mediaType, content), nil
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// tarOf packs files that belong to root and have no time, in the order given.
func tarOf(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}
