#include <gtest/gtest.h>

#include <string>

#include "schema/plan.hpp"

namespace ossa::schema {
namespace {

void check(std::string_view text, bool absolute) {
    EXPECT_EQ(is_absolute_uri(text), absolute) << ::testing::PrintToString(std::string(text).substr(0, 100));
}

TEST(Uri, AcceptsWhatRfc3986Accepts) {
    for (const char* text : {"https://example.org",
                             "HTTPS://EXAMPLE.org/a/b?c=d&e#f",
                             "ftp://ftp.is.co.za/rfc/rfc1808.txt",
                             "ldap://[2001:db8::7]/c=GB?objectClass?one",
                             "mailto:John.Doe@example.com",
                             "news:comp.infosystems.www.servers.unix",
                             "tel:+1-816-555-1212",
                             "telnet://192.0.2.16:80/",
                             "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
                             "a:",
                             "a+b-c.d:x",
                             "http://",
                             "http:",
                             "http:/a",
                             "file:///etc/passwd",
                             "http://user:pass@host:8080/",
                             "http://host:/",
                             "http://@/",
                             "http://%41/",
                             "http://h/%C3%A4",
                             "http://[::]/",
                             "http://[::1]:80",
                             "http://[1:2:3:4:5:6:7:8]/",
                             "http://[1::8]/",
                             "http://[::ffff:192.0.2.1]/",
                             "http://[1:2:3:4:5:6:1.2.3.4]/",
                             "http://[v7.a:b]/",
                             "http://[VF.x]/",
                             "http://h/a:b@c;d,e=f!$&'()*+",
                             "http://h?a/b?c",
                             "http://h#a/b?c",
                             "http://1.2.3.999/",
                             "s://h/;;//x"}) {
        check(text, true);
    }
}

TEST(Uri, RefusesRelativeReferences) {
    for (const char* text :
         {"", "/schemas/a.json", "//example.org/a", "schemas/a", "?a", "#a", "example.org", "./a:b"}) {
        check(text, false);
    }
}

TEST(Uri, RefusesBrokenUris) {
    for (const char* text : {":a",
                             "1a:b",
                             "a_b:c",
                             "ä:b",
                             " http://h",
                             "http://h ",
                             "http://a b/",
                             "http://h/a\"b",
                             "http://h/<a>",
                             "http://h/a\\b",
                             "http://h/^",
                             "http://h/{a}",
                             "http://h/a|b",
                             "http://h/`",
                             "http://h/ä",
                             "http://h/%",
                             "http://h/%4",
                             "http://h/%4g",
                             "http://h/#a#b",
                             "http://h/[a]",
                             "http://h?[",
                             "http://[::1",
                             "http://::1]/",
                             "http://[::1]x/",
                             "http://[]/",
                             "http://[1]/",
                             "http://[1:2:3:4:5:6:7]/",
                             "http://[1:2:3:4:5:6:7:8:9]/",
                             "http://[1::2::3]/",
                             "http://[::12345]/",
                             "http://[::g]/",
                             "http://[::1%25eth0]/",
                             "http://[::1.2.3]/",
                             "http://[::256.1.1.1]/",
                             "http://[::01.1.1.1]/",
                             "http://[v.a]/",
                             "http://[v7.]/",
                             "http://[vg.a]/",
                             "http://[v7a]/",
                             "http://h:8x/",
                             "http://h:-1/",
                             "http://a@b@c/",
                             "http://h:1:2/",
                             "http://h/\n",
                             "http://h/\x7f"}) {
        check(text, false);
    }
}

TEST(Uri, RefusesANulAnywhere) {
    using namespace std::string_view_literals;
    check("http://h/\0"sv, false);
    check("http\0://h/"sv, false);
    check("http://[::1\0]/"sv, false);
    check("http://[::1\0anything]/"sv, false);
    check("http://h:8\0/"sv, false);
}

TEST(Uri, LongTextsAreReadOnce) {
    const std::string many(200'000, 'a');
    check("http://h/" + many, true);
    check(many + ":", true);
    check(many, false);
    check("http://" + std::string(200'000, '@'), false);
    check("http://[" + many + "]/", false);
    check("http://[v1." + many + "]/", true);
    check("a:" + std::string(200'000, '%'), false);
}

}  // namespace
}  // namespace ossa::schema
