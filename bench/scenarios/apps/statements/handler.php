<?php

declare(strict_types=1);

namespace Samovar\Bench\Statements;

use PDO;
use PDOStatement;

/** A table of a hundred products, and a query of it, kept as long as the process keeps its memory. */
function products(): PDOStatement
{
    static $query = null;
    if ($query !== null) {
        return $query;
    }
    $database = new PDO('sqlite::memory:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    $database->exec('CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price INTEGER)');
    for ($number = 1; $number <= 100; ++$number) {
        $database->exec("INSERT INTO product VALUES ($number, 'Product $number', $number * 10)");
    }

    return $query = $database->prepare('SELECT id, name, price FROM product WHERE id > ? ORDER BY id LIMIT 3');
}

/** Times of batches of as many queries as the request asks for, as JSON: ns by the way of fetching. */
function answer(): string
{
    $queries = (int) ($_GET['queries'] ?? 20);
    $query = products();
    $query->execute([0]);
    $query->fetchAll(PDO::FETCH_ASSOC);
    $begin = hrtime(true);
    for ($number = 0; $number < $queries; ++$number) {
        $query->execute([$number]);
        $query->fetchAll(PDO::FETCH_ASSOC);
    }
    $all = hrtime(true);
    for ($number = 0; $number < $queries; ++$number) {
        $query->execute([$number]);
        $query->fetch(PDO::FETCH_ASSOC);
    }

    return json_encode(['fetchAll' => $all - $begin, 'fetch' => hrtime(true) - $all]);
}
