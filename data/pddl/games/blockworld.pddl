; An arm that holds one block at a time builds towers on a table.
(define (domain blockworld)
  (:types block)
  (:predicates
    (on-table ?block - block)
    (on ?upper ?lower - block)
    (clear ?block - block)
    (holding ?block - block)
    (arm-empty))
  (:action pickup
    :parameters (?block - block)
    :precondition (and (arm-empty) (on-table ?block) (clear ?block))
    :effect (and (holding ?block) (not (arm-empty)) (not (on-table ?block)) (not (clear ?block))))
  (:action putdown
    :parameters (?block - block)
    :precondition (holding ?block)
    :effect (and (on-table ?block) (clear ?block) (arm-empty) (not (holding ?block))))
  (:action stack
    :parameters (?upper ?lower - block)
    :precondition (and (holding ?upper) (clear ?lower))
    :effect (and (on ?upper ?lower) (clear ?upper) (arm-empty) (not (holding ?upper)) (not (clear ?lower))))
  (:action unstack
    :parameters (?upper ?lower - block)
    :precondition (and (arm-empty) (on ?upper ?lower) (clear ?upper))
    :effect (and (holding ?upper) (clear ?lower) (not (on ?upper ?lower)) (not (clear ?upper)) (not (arm-empty)))))
