#include "validator/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_set>

namespace ossa::validator {
namespace {

namespace fs = std::filesystem;

bool is_manifest_name(const fs::path& path) {
    const std::string extension = path.extension().string();
    return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

// All files below a folder; folders that cannot be read are passed over, symbolic links to folders are not followed.
std::vector<std::string> files_below(const fs::path& folder) {
    std::vector<std::string> found;
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
        std::error_code ignored;
        if (at->path().filename() == ".git") {
            at.disable_recursion_pending();
        } else if (at->is_regular_file(ignored)) {
            found.push_back(at->path().string());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

bool has_wildcard(std::string_view text) {
    return text.find_first_of("*?[") != std::string_view::npos;
}

// [abc], [a-z], [!a]: whether `c` is in the set at the start of the pattern, and how long the set is.
bool in_set(std::string_view pattern, char c, std::size_t& length) {
    std::size_t i = 1;
    const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    i += negated ? 1 : 0;
    bool found = false;
    const std::size_t first = i;
    while (i < pattern.size() && (pattern[i] != ']' || i == first)) {
        if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            found = found || (pattern[i] <= c && c <= pattern[i + 2]);
            i += 3;
        } else {
            found = found || pattern[i] == c;
            ++i;
        }
    }
    length = i < pattern.size() ? i + 1 : 0;
    return found != negated;
}

std::vector<std::string> expand(const std::string& pattern) {
    const std::size_t wildcard = pattern.find_first_of("*?[");
    const std::size_t slash = pattern.rfind('/', wildcard);
    const std::string root = slash == std::string::npos ? "" : pattern.substr(0, slash + 1);
    std::vector<std::string> found;
    const bool deep = pattern.find("**") != std::string::npos || pattern.find('/', wildcard) != std::string::npos;
    if (deep) {
        for (std::string& file : files_below(root.empty() ? "." : root)) {
            std::string_view name = file;
            if (root.empty() && name.starts_with("./")) {
                name.remove_prefix(2);
            }
            if (matches(pattern, name)) {
                found.emplace_back(name);
            }
        }
        return found;
    }
    std::error_code error;
    fs::directory_iterator at(root.empty() ? "." : root, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        const std::string name = root + at->path().filename().string();
        std::error_code ignored;
        if (matches(pattern, name) && at->is_regular_file(ignored)) {
            found.push_back(name);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string system_message() {
    return std::error_code(errno, std::generic_category()).message();
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
    // The usual two-pointer walk with one place to come back to; "**" may take slashes.
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t back_p = std::string_view::npos;
    std::size_t back_n = 0;
    bool back_deep = false;
    std::size_t deep_p = std::string_view::npos;
    std::size_t deep_n = 0;
    while (true) {
        if (p < pattern.size() && pattern[p] == '*') {
            const bool deep = p + 1 < pattern.size() && pattern[p + 1] == '*';
            p += deep ? 2 : 1;
            if (deep && p < pattern.size() && pattern[p] == '/') {
                ++p;  // "**/" stands for no folder as well
            }
            back_p = p;
            back_n = n;
            back_deep = deep;
            if (deep) {
                deep_p = p;
                deep_n = n;
            }
            continue;
        }
        std::size_t set_length = 0;
        if (n < name.size() && p < pattern.size() &&
            (pattern[p] == name[n] || (pattern[p] == '?' && name[n] != '/') ||
             (pattern[p] == '[' && name[n] != '/' && in_set(pattern.substr(p), name[n], set_length) &&
              set_length > 0))) {
            p += set_length > 0 ? set_length : 1;
            ++n;
            continue;
        }
        if (n == name.size() && p == pattern.size()) {
            return true;
        }
        if (back_p != std::string_view::npos && back_n < name.size() && (back_deep || name[back_n] != '/')) {
            n = ++back_n;
            p = back_p;
            if (back_deep) {
                deep_n = back_n;
            }
            continue;
        }
        if (deep_p != std::string_view::npos && deep_n < name.size()) {
            n = ++deep_n;
            p = deep_p;
            back_p = deep_p;
            back_n = deep_n;
            back_deep = true;
            continue;
        }
        return false;
    }
}

Inputs find_inputs(const std::vector<std::string>& arguments) {
    Inputs inputs;
    std::unordered_set<std::string> seen;
    const auto take = [&](const std::string& file) {
        if (seen.insert(fs::path(file).lexically_normal().string()).second) {
            inputs.files.push_back(file);
        }
    };
    for (const std::string& argument : arguments) {
        std::error_code error;
        if (argument == "-") {
            take(argument);
        } else if (fs::is_directory(argument, error)) {
            bool any = false;
            for (const std::string& file : files_below(argument)) {
                if (is_manifest_name(file)) {
                    take(file);
                    any = true;
                }
            }
            if (!any) {
                inputs.without_hits.push_back(argument);
            }
        } else if (!fs::exists(argument, error) && has_wildcard(argument)) {
            const std::vector<std::string> files = expand(argument);
            for (const std::string& file : files) {
                take(file);
            }
            if (files.empty()) {
                inputs.without_hits.push_back(argument);
            }
        } else {
            take(argument);
        }
    }
    return inputs;
}

Result<std::string> read_input(const std::string& file, bool* again) {
    const bool standard = file == "-";
    const int fd = standard ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return failure(errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable, system_message());
    }
    std::string text;
    struct stat about {};
    const bool regular = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    if (again != nullptr) {
        *again = regular;
    }
    std::optional<Error> wrong;
    if (regular && static_cast<std::size_t>(about.st_size) > file_bytes_max) {
        wrong = Error{ErrorCode::too_large, "larger than 256 MiB"};
    }
    std::size_t chunk = regular ? static_cast<std::size_t>(about.st_size) + 1 : std::size_t{64} << 10;
    while (!wrong) {
        const std::size_t before = text.size();
        text.resize(before + chunk);
        const ssize_t got = ::read(fd, text.data() + before, chunk);
        text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            wrong = Error{ErrorCode::unavailable, system_message()};
        } else if (got == 0 || (regular && static_cast<std::size_t>(got) < chunk)) {
            break;
        } else if (text.size() > file_bytes_max) {
            wrong = Error{ErrorCode::too_large, "larger than 256 MiB"};
        }
        chunk = std::max<std::size_t>(std::size_t{64} << 10, std::min(text.size(), std::size_t{4} << 20));
    }
    if (!standard) {
        ::close(fd);
    }
    if (wrong) {
        return unexpected(std::move(*wrong));
    }
    return text;
}

}  // namespace ossa::validator
