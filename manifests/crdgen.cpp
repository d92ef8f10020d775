// ossa-crdgen FOLDER: writes the CRDs into the folder and leaves files that are up to date alone. A build tool, not
// shipped.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "schema/crd.hpp"

namespace {

std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    return !out.fail();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: ossa-crdgen FOLDER\n";
        return 2;
    }
    for (const ossa::schema::CrdFile& crd : ossa::schema::crds()) {
        const std::filesystem::path file = std::filesystem::path(argv[1]) / crd.name;
        if (contents(file) == crd.text) {
            continue;
        }
        if (!write(file, crd.text)) {
            std::cerr << "ossa-crdgen: cannot write " << file.string() << '\n';
            return 1;
        }
        std::cout << "wrote " << file.string() << '\n';
    }
    return 0;
}
