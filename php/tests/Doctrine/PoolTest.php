<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Doctrine;

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\ConnectionException;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception\DriverException;
use Doctrine\DBAL\Exception\UniqueConstraintViolationException;
use PHPUnit\Framework\TestCase;
use Samovar\Runtime\Doctrine\PoolMiddleware;
use Samovar\Runtime\Doctrine\Refused;
use Samovar\Runtime\Doctrine\TaskConnection;

use function Samovar\Runtime\Doctrine\another;

/**
 * Tests the pool of Doctrine connections with the polyfilled pool. The server's tests cover
 * concurrent tasks.
 */
final class PoolTest extends TestCase
{
    private PoolMiddleware $middleware;
    private Connection $connection;
    private string $file;

    protected function setUp(): void
    {
        $this->file = (string) tempnam(sys_get_temp_dir(), 'samovar-pool-');
        $this->middleware = new PoolMiddleware(size: 3, maxUses: 20, wait: 0.01);
        $this->connection = $this->connect();
        $columns = 'id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE';
        $this->connection->executeStatement("CREATE TABLE cups ($columns)");
    }

    protected function tearDown(): void
    {
        unset($this->connection, $this->middleware);
        unlink($this->file);
    }

    private function connect(array $more = []): Connection
    {
        $configuration = (new Configuration())->setMiddlewares([$this->middleware]);

        return DriverManager::getConnection(['driver' => 'pdo_sqlite', 'path' => $this->file] + $more, $configuration);
    }

    private function stat(string $name): int
    {
        return $this->middleware->stats()[0][$name];
    }

    public function testStatementsAreExecutedAndLeaveNothingTaken(): void
    {
        self::assertSame(1, $this->connection->insert('cups', ['name' => 'ada']));
        self::assertEquals(1, $this->connection->lastInsertId());
        $this->connection->executeStatement("INSERT INTO cups (name) VALUES ('bob')");
        self::assertEquals(2, $this->connection->lastInsertId());
        self::assertSame(['ada', 'bob'], $this->connection->fetchFirstColumn('SELECT name FROM cups ORDER BY id'));
        $twice = [['a' => 1, 'b' => 1]];
        self::assertEquals($twice, $this->connection->fetchAllAssociative('SELECT 1 AS a, 1 AS b, 1 AS a'));
        self::assertCount(3, $this->connection->fetchNumeric('SELECT 1 AS a, 1 AS b, 1 AS a'));
        $named = $this->connection->fetchOne('SELECT name FROM cups WHERE id = :id', ['id' => 2]);
        self::assertSame('bob', $named);
        $some = 'SELECT name FROM cups WHERE id IN (?) ORDER BY id';
        $found = $this->connection->fetchFirstColumn($some, [[1, 2]], [Connection::PARAM_INT_ARRAY]);
        self::assertSame(['ada', 'bob'], $found);
        self::assertFalse($this->connection->fetchOne('SELECT name FROM cups WHERE id = 7'));
        self::assertSame("'o''clock'", $this->connection->quote("o'clock"));
        self::assertSame([1, 0], [$this->stat('made'), $this->stat('used')]);
    }

    public function testAStatementIsExecutedAgainAndAgain(): void
    {
        $insert = $this->connection->prepare('INSERT INTO cups (name) VALUES (?)');
        foreach (['a', 'b', 'c'] as $name) {
            $insert->bindValue(1, $name);
            self::assertSame(1, $insert->executeStatement());
        }
        $select = $this->connection->prepare('SELECT name FROM cups WHERE id = :id AND name = :name');
        $select->bindValue('name', 'b');
        $select->bindValue('id', 2);
        self::assertSame('b', $select->executeQuery()->fetchOne());
        self::assertSame(0, $this->stat('used'));
    }

    public function testAResultKeepsItsConnectionUntilItIsReadOrForgotten(): void
    {
        $result = $this->connection->executeQuery('SELECT 1 UNION SELECT 2');
        self::assertSame(1, $this->stat('used'));
        self::assertEquals([1], $result->fetchNumeric());
        // Uses another connection meanwhile.
        self::assertEquals(3, $this->connection->fetchOne('SELECT 3'));
        self::assertEquals([2], $result->fetchNumeric());
        self::assertFalse($result->fetchNumeric());
        self::assertSame(0, $this->stat('used'));
        self::assertFalse($result->fetchAssociative(), 'and goes on to say so');
        self::assertSame(1, $result->columnCount());
        $result = $this->connection->executeQuery('SELECT 1');
        unset($result);
        self::assertSame(0, $this->stat('used'));
        foreach ($this->connection->iterateAssociative('SELECT 1 AS a UNION SELECT 2') as $row) {
            break;
        }
        unset($row);
        self::assertSame(0, $this->stat('used'));
    }

    public function testWhoTakesTooManyIsTold(): void
    {
        $results = [];
        $this->expectException(\Samovar\TimeoutException::class);
        for ($i = 0; $i < 4; $i++) {
            $results[] = $this->connection->executeQuery('SELECT 1');
        }
    }

    public function testATransactionKeepsOneConnection(): void
    {
        $this->connection->beginTransaction();
        $this->connection->insert('cups', ['name' => 'ada']);
        self::assertEquals(1, $this->connection->lastInsertId());
        self::assertSame(1, $this->stat('used'));
        self::assertEquals(1, $this->connection->fetchOne('SELECT count(*) FROM cups'));
        $this->connection->rollBack();
        self::assertEquals(0, $this->connection->fetchOne('SELECT count(*) FROM cups'));
        $this->connection->transactional(fn (Connection $within) => $within->insert('cups', ['name' => 'bob']));
        self::assertEquals(1, $this->connection->fetchOne('SELECT count(*) FROM cups'));
        self::assertSame(0, $this->stat('used'));
        try {
            $this->connection->transactional(function (Connection $within): void {
                $within->insert('cups', ['name' => 'eve']);
                throw new \DomainException('no');
            });
        } catch (\DomainException) {
        }
        self::assertEquals(1, $this->connection->fetchOne('SELECT count(*) FROM cups'));
        self::assertSame(0, $this->stat('used'));
    }

    public function testATransactionIsItsTasks(): void
    {
        $connection = $this->connect(['wrapperClass' => TaskConnection::class]);
        $insert = static fn (string $name): int => $connection->insert('cups', ['name' => $name]);
        $count = fn (): mixed => $this->connection->fetchOne('SELECT COUNT(*) FROM cups');
        $task = new \Fiber(static function () use ($connection, $insert): void {
            $connection->transactional(static function () use ($connection, $insert): void {
                $insert('ada');
                $connection->transactional(static fn (): int => $insert('bob'));
                \Fiber::suspend();
            });
        });
        $task->start();
        foreach (['beginTransaction', 'commit', 'rollBack'] as $does) {
            try {
                $connection->$does();
                self::fail("$does() of another task's transaction");
            } catch (Refused $refused) {
                self::assertStringContainsString('another($connection)', $refused->getMessage());
            }
        }
        self::assertEquals(0, $count());
        $task->resume();
        self::assertEquals(2, $count());
        $connection->transactional(static fn (): int => $insert('eve'));
        self::assertEquals(3, $count());
    }

    public function testWhoEndsWithinATransactionLeavesNoneToTheNext(): void
    {
        $connection = $this->connect(['wrapperClass' => TaskConnection::class]);
        $task = new \Fiber(static function () use ($connection): void {
            $connection->beginTransaction();
            $connection->insert('cups', ['name' => 'ada']);
        });
        $task->start();
        try {
            $connection->commit();
            self::fail('there is none');
        } catch (ConnectionException $none) {
            self::assertStringContainsString('no active transaction', $none->getMessage());
        }
        $connection->beginTransaction();
        $connection->insert('cups', ['name' => 'bob']);
        self::assertSame(1, $connection->getTransactionNestingLevel());
        $connection->rollBack();
        self::assertEquals(0, $connection->fetchOne('SELECT COUNT(*) FROM cups'));
    }

    public function testAConnectionThatIsForgottenInATransactionIsRolledBack(): void
    {
        $other = another($this->connection);
        $other->beginTransaction();
        $other->insert('cups', ['name' => 'ada']);
        self::assertCount(1, $this->middleware->stats(), 'one pool for both');
        self::assertSame(1, $this->stat('used'));
        unset($other);
        gc_collect_cycles();
        self::assertSame(0, $this->stat('used'));
        self::assertEquals(0, $this->connection->fetchOne('SELECT count(*) FROM cups'));
    }

    public function testWhatTheDatabaseRefusesCostsNoConnection(): void
    {
        $this->connection->insert('cups', ['name' => 'ada']);
        for ($i = 0; $i < 5; $i++) {
            try {
                $this->connection->insert('cups', ['name' => 'ada']);
                self::fail('it is there already');
            } catch (UniqueConstraintViolationException) {
            }
        }
        self::assertSame([1, 0], [$this->stat('made'), $this->stat('used')]);
    }

    public function testConnectionsAreReplacedAfterTheirUses(): void
    {
        for ($i = 0; $i < 45; $i++) {
            $this->connection->fetchOne('SELECT 1');
        }
        self::assertSame(3, $this->stat('made'));
    }

    public function testEachDatabaseHasItsPool(): void
    {
        $this->connection->fetchOne('SELECT 1');
        $this->connect()->fetchOne('SELECT 1');
        self::assertCount(1, $this->middleware->stats());
        $this->connect(['driverOptions' => [\PDO::ATTR_TIMEOUT => 3]])->fetchOne('SELECT 1');
        self::assertCount(2, $this->middleware->stats());
    }

    /** @dataProvider statementsThatStay */
    public function testWhatWouldStayWithAConnectionIsRefused(string $statement): void
    {
        $this->expectException(DriverException::class);
        $this->expectExceptionMessage('different connections of a pool');
        $this->connection->executeStatement($statement);
    }

    public static function statementsThatStay(): array
    {
        return [
            ['BEGIN'],
            [' begin immediate'],
            ['START  TRANSACTION'],
            ['LOCK TABLES cups READ'],
            ['SET autocommit=0'],
            ['SET SESSION autocommit = 0'],
        ];
    }

    public function testThereIsNotOneNativeConnection(): void
    {
        $this->expectExceptionMessage('A pool has no single native connection');
        $this->connection->getNativeConnection();
    }
}
