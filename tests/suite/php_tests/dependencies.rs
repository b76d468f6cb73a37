//! Tests that depend on each other run as in `phpunit`: in one process, and after a crash each one
//! after its producers.

use super::fixtures::{Project, class, junit};

const GOOD: &str = "self::assertTrue(true);";

/// Tests that pass a value on, within a class and across classes.
fn chain() -> Project {
    Project::new(&[
        (
            "tests/ChainTest.php",
            "<?php namespace A;
            final class ChainTest extends \\PHPUnit\\Framework\\TestCase
            {
                public function testAlone(): void { self::assertTrue(true); }
                /** @depends clone testFirst */
                public function testSecond(\\stdClass $n): \\stdClass
                { self::assertSame(7, $n->n); return $n; }
                public function testFirst(): \\stdClass
                { self::assertTrue(true); return (object) ['n' => 7]; }
                /**
                 * @depends testSecond
                 * @depends A\\OtherTest::testOther
                 */
                public function testThird(\\stdClass $n, int $m): void
                { self::assertSame(15, $n->n + $m); }
                /** @depends testFails */
                public function testSkipped(): void { self::assertTrue(true); }
                public function testFails(): void { self::fail('bad'); }
                /** @depends missing */
                public function testWrong(): void { self::assertTrue(true); }
            }",
        ),
        (
            "tests/OtherTest.php",
            "<?php namespace A;
            final class OtherTest extends \\PHPUnit\\Framework\\TestCase
            {
                public function testOther(): int { self::assertTrue(true); return 8; }
                public function testMore(): void { self::assertTrue(true); }
            }",
        ),
        (
            "tests/WholeTest.php",
            "<?php namespace A;
            /** @depends A\\OtherTest::class */
            final class WholeTest extends \\PHPUnit\\Framework\\TestCase
            {
                public function testWhole(): void { self::assertTrue(true); }
            }",
        ),
    ])
}

#[test]
fn tests_that_depend_on_each_other_have_the_results_of_phpunit() {
    let project = chain();
    for options in [&[][..], &["--filter", "First|Second"], &["--filter", "/Second$/"]] {
        let expected = project.phpunit(options);
        for by in ["class", "file", "test"] {
            let found = project.test_with(&["--by", by], options);
            assert_eq!(junit(&found.log), junit(&expected.log), "{by} {options:?}: {}", found.text);
            assert_eq!(found.status, expected.status, "{by} {options:?}: {}", found.text);
        }
    }
}

#[test]
fn crash_leaves_the_results_of_tests_that_do_not_depend_on_it() {
    let project = Project::new(&[(
        "tests/CrashTest.php",
        "<?php
        final class CrashTest extends PHPUnit\\Framework\\TestCase
        {
            public function testFirst(): int { self::assertTrue(true); return 7; }
            /** @depends testFirst */
            public function testSecond(int $n): int { self::assertSame(7, $n); return 8; }
            /** @depends testSecond */
            public function testCrash(): void { posix_kill(posix_getpid(), SIGSEGV); }
            /** @depends testCrash */
            public function testAfter(): void { self::assertTrue(true); }
            public function testAlone(): void { self::assertTrue(true); }
        }",
    )]);
    let all = "Tests: 5, Assertions: 3, Errors: 1, Skipped: 1.";
    let three = "Tests: 3, Assertions: 2, Errors: 1.";
    for (by, options, counts) in [
        ("class", &[][..], all),
        ("test", &[], all),
        ("class", &["--filter", "First|Second|Crash$"], three),
        ("test", &["--filter", "#First|second|crash$#i"], three),
    ] {
        let run = project.test_with(&["--by", by], options);
        assert_eq!(run.status, 2, "{by}: {}", run.text);
        assert!(run.text.contains(counts), "{by} {options:?}: {}", run.text);
        assert!(run.text.contains("CrashTest::testCrash\nThe test has no result"), "{}", run.text);
    }
}

#[test]
fn part_of_a_class_has_the_results_of_phpunit() {
    let failing = "public static function setUpBeforeClass(): void { throw new Error('up'); }";
    let skipping = "public static function setUpBeforeClass(): void { self::markTestSkipped(); }";
    let methods = [("testA", GOOD), ("testB", GOOD), ("testC", GOOD)];
    let with =
        |name: &str, more: &str| class(name, &methods).replacen('{', &format!("{{ {more}"), 1);
    let provider = "public function none(): array { throw new RuntimeException('no data'); }
        /** @dataProvider none */ public function testData(int $n): void {}";
    for text in [
        with("PartTest", failing),
        with("PartTest", skipping),
        with("PartTest", provider),
        with(
            "PartTest",
            "public function testX_1(): void { self::assertTrue(true); }
            public function testX(): void { self::assertTrue(false); }",
        ),
    ] {
        let project = Project::new(&[("tests/PartTest.php", &text)]);
        for options in [&[][..], &["--filter", "testB"], &["--filter", "Part"]] {
            let expected = project.phpunit(options);
            let found = project.test_with(&["--by", "test"], options);
            assert_eq!(
                junit(&found.log),
                junit(&expected.log),
                "{options:?} {text} {}",
                found.text
            );
            assert_eq!(found.status, expected.status, "{options:?} {text} {}", found.text);
        }
    }
}

#[test]
fn data_sets_with_names_of_any_bytes_have_the_results_of_phpunit() {
    let project = Project::new(&[(
        "tests/NamesTest.php",
        "<?php
        final class NamesTest extends PHPUnit\\Framework\\TestCase
        {
            public static function sets(): array
            {
                $names = [\"a\\xff\\xfe\", \"\\xc3\", 'é€ a::b', \"\\xed\\xa0\\x80\",
                    \"\\xef\\xbf\\xbe\", \"\\x01\\n\\t\"];
                return array_combine($names, [[1], [2], [3], [4], [5], [6]]);
            }
            /** @dataProvider sets */
            public function testSets(int $n): void { self::assertNotSame(2, $n); }
            public function testOther(): void { self::assertTrue(true); }
        }",
    )]);
    for (by, options, counts) in [
        ("class", &[][..], "Tests: 7, Assertions: 7, Failures: 1."),
        ("test", &[], "Tests: 7, Assertions: 7, Failures: 1."),
        ("test", &["--filter", "testSets@é.*"], "Tests: 1, Assertions: 1."),
    ] {
        let run = project.test_with(&["--by", by], options);
        assert!(run.text.contains(counts), "{by} {options:?}: {}", run.text);
    }
}
