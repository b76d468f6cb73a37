<?php

declare(strict_types=1);

namespace Connections;

/** The functions pg_*. */
final class Pgsql extends PgsqlServer
{
    private \PgSql\Connection $link;
    private int $descriptor;

    protected function connect(): void
    {
        $before = self::descriptors();
        $this->link = pg_connect($this->place());
        $this->descriptor = (int) current(array_diff(self::descriptors(), $before));
    }

    /** @return list<string> */
    private static function descriptors(): array
    {
        $is_socket = static fn ($fd) => str_starts_with((string) @readlink("/proc/self/fd/$fd"), 'socket');

        return array_filter(scandir('/proc/self/fd'), $is_socket);
    }

    public function error(\Throwable $e): string
    {
        return $e->getMessage();
    }

    private function rows(\PgSql\Result|false $result): mixed
    {
        if ($result === false) {
            return 'error ' . pg_last_error($this->link);
        }
        $rows = array_map('array_values', pg_fetch_all($result));

        return pg_num_fields($result) > 0 ? $rows : 'affected ' . pg_affected_rows($result);
    }

    public function state(): array
    {
        return [pg_transaction_status($this->link), pg_connection_busy($this->link),
            pg_client_encoding($this->link), pg_parameter_status($this->link, 'application_name')];
    }

    public function query(string $sql): mixed
    {
        return $this->rows(@pg_query($this->link, $sql));
    }

    /** Statements of one message of the simple protocol. */
    public function run(string $sql): mixed
    {
        return $this->query($sql);
    }

    public function params(string $sql, array $arguments): mixed
    {
        return $this->rows(@pg_query_params($this->link, $sql, $arguments));
    }

    public function prepare(string $name, string $sql): string
    {
        return @pg_prepare($this->link, $name, $sql) ? 'prepared' : 'error ' . pg_last_error($this->link);
    }

    public function execute(string $name, array $arguments): mixed
    {
        return $this->rows(@pg_execute($this->link, $name, $arguments));
    }

    public function close(string $name): mixed
    {
        return $this->query("DEALLOCATE \"$name\"");
    }

    public function begin(): mixed
    {
        return $this->query('BEGIN');
    }

    public function commit(): mixed
    {
        return $this->query('COMMIT');
    }

    public function rollBack(): mixed
    {
        return $this->query('ROLLBACK');
    }

    public function notifications(): array
    {
        $all = [];
        while ($one = pg_get_notify($this->link)) {
            $all[] = [$one['message'], $one['payload']];
        }

        return $all;
    }

    public function copyIn(string $table, array $rows): bool
    {
        return @pg_copy_from($this->link, $table, array_map(static fn ($row) => "$row\n", $rows));
    }

    public function copyOut(string $table): array|false
    {
        return @pg_copy_to($this->link, $table);
    }

    /** Starts a query and does not read its result. */
    public function send(string $sql): bool
    {
        return pg_send_query($this->link, $sql);
    }

    public function encode(string $encoding): int
    {
        return pg_set_client_encoding($this->link, $encoding);
    }

    public function insertRow(string $table, array $row): mixed
    {
        return (bool) @pg_insert($this->link, $table, $row);
    }

    /** Messages of one batch of the extended protocol, up to the server's ReadyForQuery. Returns the
     * kinds of the server's messages.
     *
     * @param list<array{string, string}> $messages Kind and body; `~` is a zero byte. */
    public function batch(array $messages): string
    {
        // Two readers of one socket: the responses of a sent query must be read before.
        while (pg_get_result($this->link) !== false) {
        }
        $c = \FFI::cdef('long write(int, const char *, unsigned long); long read(int, char *, unsigned long);');
        $bytes = '';
        $ready = 0;
        foreach ([...$messages, ['S', '']] as [$kind, $body]) {
            $ready += (int) in_array($kind, ['S', 'Q', 'F'], true);
            $body = str_replace('~', "\0", $body);
            $bytes .= $kind . pack('N', strlen($body) + 4) . $body;
        }
        $c->write($this->descriptor, $bytes, strlen($bytes));
        $kinds = $received = '';
        $buffer = $c->new('char[4096]');
        while (substr_count($kinds, 'Z') < $ready) {
            while (strlen($received) < 5 || strlen($received) < unpack('N', $received, 1)[1] + 1) {
                $read = [pg_socket($this->link)];
                $none = null;
                stream_select($read, $none, $none, 5);
                $length = $c->read($this->descriptor, $buffer, 4096);
                if ($length <= 0) {
                    return $kinds . ' and no more';
                }
                $received .= \FFI::string($buffer, $length);
            }
            $kinds .= $received[0];
            $received = substr($received, unpack('N', $received, 1)[1] + 1);
        }

        return $kinds;
    }
}
