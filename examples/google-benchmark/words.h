#pragma once
#include <cstddef>
#include <string>
#include <unordered_map>

// How often each word is there.
inline std::unordered_map<std::string, std::size_t> count(const std::string &text) {
    std::unordered_map<std::string, std::size_t> counts;
    std::size_t start = 0;
    while (start < text.size()) {
        std::size_t end = text.find(' ', start);
        if (end == std::string::npos) end = text.size();
        if (end > start) counts[text.substr(start, end - start)]++;
        start = end + 1;
    }
    return counts;
}
